from hypothesis import settings

# A decision takes a fraction of a millisecond; what is slow here is the machine, and that is no error.
settings.register_profile("laws", deadline=None, max_examples=100)
settings.load_profile("laws")
