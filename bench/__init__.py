"""Figures of time and memory: never a test, always measured."""
