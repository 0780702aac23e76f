"""Adapters: a module or package per platform key, each with a `stage` function."""
