"""The tests; `reference` and `strategies` are shared by several of them."""
