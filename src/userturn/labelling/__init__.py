"""Labelling by people: a blinded sample as sheets, labels read back, double labelling and adjudication."""


class LabellingError(ValueError):
    """Something about a sample, a sheet or a returned file is wrong: says what, where, and what is allowed."""
