"""Trials: the value that runs on every target, its parts, its JSON form and its Python source."""
