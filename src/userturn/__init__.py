"""userturn: does a language model know what comes after its own answer?"""

__version__ = "0.1.0"
