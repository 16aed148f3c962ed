# syntax=docker/dockerfile:1
# The dependencies and the wheel are installed in one stage; the other is a slim Python with the result:
# no compiler, no sources, no caches, not root. All packages come from requirements/*.txt, with hashes.
#
# Pin the base by its digest: --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:...
# (`docker buildx imagetools inspect python:3.11-slim-bookworm` prints it; `make image` requires it).
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --only-binary=:all: --require-hashes -r requirements/build.txt \
 && python -m venv --without-pip /opt/karmada-pyscheduler \
 && /opt/build/bin/pip --python /opt/karmada-pyscheduler install \
      --no-cache-dir --only-binary=:all: --require-hashes -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY operator operator
COPY advisor advisor
COPY plugins plugins
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/build/bin/pip --python /opt/karmada-pyscheduler install --no-cache-dir --no-deps /wheels/*.whl

FROM ${PYTHON_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=""
ARG CREATED=""
ARG PYTHON_IMAGE
LABEL org.opencontainers.image.title="karmada-pyscheduler" \
      org.opencontainers.image.description="A scheduler for Karmada control planes with Python plugins" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${PYTHON_IMAGE}"
COPY --from=build /opt/karmada-pyscheduler /opt/karmada-pyscheduler
ENV PATH=/opt/karmada-pyscheduler/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# At run time, only certificates of the kubeconfig are written, to /tmp: with a read-only root, mount a volume there.
# Any user id works: it needs no name, no entry in /etc/passwd and no home.
USER 65532:65532
ENTRYPOINT ["karmada-pyscheduler"]
