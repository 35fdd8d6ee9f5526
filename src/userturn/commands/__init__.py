"""The commands of `userturn`, one module each.

A module has a ``HELP`` line, ``add_arguments(parser)`` and ``run(options)``, which returns the exit code. What a
command needs beyond argparse is imported inside `run`, so that ``userturn --help`` stays quick.
"""
