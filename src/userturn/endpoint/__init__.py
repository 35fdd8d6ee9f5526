"""Servers that speak the OpenAI protocol."""
