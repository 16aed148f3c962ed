"""The examples of docs/examples, as authors would test them."""
