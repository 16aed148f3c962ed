# syntax=docker/dockerfile:1
# A wheel in one stage, what runs in another: no compiler, no pip cache, no source, not root.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY requirements/runtime.txt requirements/runtime.txt
RUN python -m venv /opt/karmada-pyscheduler \
 && /opt/karmada-pyscheduler/bin/pip install --no-cache-dir --require-hashes -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY operator operator
COPY plugins plugins
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
 && /opt/karmada-pyscheduler/bin/pip install --no-cache-dir --no-deps /wheels/*.whl

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="karmada-pyscheduler" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/karmada-pyscheduler /opt/karmada-pyscheduler
USER 65532:65532
ENTRYPOINT ["/opt/karmada-pyscheduler/bin/karmada-pyscheduler"]
