from hypothesis import settings

# A decision takes a fraction of a millisecond; a slow example means a slow machine and is no error.
settings.register_profile("laws", deadline=None, max_examples=100)
settings.load_profile("laws")
