"""`userturn power`: what difference a design can see."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from userturn.commands.refusal import Refusal

HELP = "what difference a design can see, by simulation"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("--items", type=int, required=True, metavar="N", help="items of the dataset")
    parser.add_argument("--samples", type=int, default=1, metavar="K", help="user turns an item and condition")
    parser.add_argument("--rate", type=float, required=True, help="genuine-followup rate of the baseline, 0 to 1")
    parser.add_argument(
        "--icc", type=float, default=0.3, help="intraclass correlation of an item's samples, 0 to 1 (default: 0.3)"
    )
    parser.add_argument(
        "--difference",
        type=float,
        help="true rate under the perturbation minus the baseline's; left out: the smallest rise seen in 80 %% of "
        "studies is searched",
    )
    parser.add_argument("--alpha", type=float, default=0.05, help="two-sided level of the test (default: 0.05)")
    parser.add_argument(
        "--pairing",
        type=float,
        default=0.5,
        help="share of items that keep their rank of propensity between the conditions (default: 0.5)",
    )
    parser.add_argument(
        "--simulations",
        type=int,
        metavar="N",
        help="studies to simulate (default: 1000; 300 for each difference tried in a search)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the simulation (default: 0)")
    parser.add_argument("--json", action="store_true", help="for machines")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    from userturn.statistics.power import detectable_difference, power

    design = (options.items, options.samples, options.rate, options.icc)
    simulations = options.simulations or (300 if options.difference is None else 1000)
    settings = {
        "alpha": options.alpha,
        "pairing": options.pairing,
        "simulations": simulations,
        "seed": options.seed,
    }
    try:
        if options.difference is None:
            found = detectable_difference(*design, **settings)
        else:
            found = power(*design, options.difference, **settings)
    except ValueError as error:
        raise Refusal(f"{error}") from error
    if found is None:
        raise Refusal("this design sees not even a rise to a rate of 1 in 80 % of studies: take more items")
    if options.json:
        print(json.dumps(asdict(found), sort_keys=True))
        return 0
    low, high = found.interval.low, found.interval.high
    print(
        f"{found.n_items} items, {found.samples} samples an item and condition, baseline rate {found.rate:.4g}, "
        f"intraclass correlation {found.icc:.4g}"
    )
    print(
        f"a true difference of {found.difference:+.4g} is found (paired test, p < {found.alpha:g}) in "
        f"{found.power:.1%} of studies (95 % simulation interval {low:.1%} to {high:.1%})"
    )
    print(
        f"simulated: {simulations} studies, beta-binomial items, "
        f"{found.pairing:.0%} of items keep their rank between the conditions"
    )
    return 0
