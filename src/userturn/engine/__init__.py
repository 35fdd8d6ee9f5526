"""Engines that write turns: one interface, and the store that keeps finished cells."""
