"""What a study will cost before anything runs: cells, jobs, prompts, tokens, time and accelerator-hours.

Nothing is fetched and no artefact is needed. Where runs have left measurements they take the place of assumptions, and
each figure says which of the two it rests on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from userturn import grid
from userturn.assumptions import (
    ANSWER_SHARE,
    DATASETS,
    FOLLOWED_UP,
    HEADER_TOKENS,
    JOB_SECONDS,
    KNOWN_TEXT_TOKENS,
    OTHER_DATASET,
    TOKENS_PER_WORD,
    TRAINING_SECONDS,
    TURN_SECONDS,
    USER_TURN_SHARE,
    USER_TURN_TOKENS,
)
from userturn.config.perturbations import AppendedQuestion, Instructed, TruncatedAssistant
from userturn.config.resources import Resources
from userturn.config.study import Study
from userturn.measured import TRAINING, Lengths, Measured, generated, job_names
from userturn.plan_basis import basis


@dataclass(frozen=True)
class Tokens:
    """Prompts and their tokens, of a cell, a stage or a study.

    Attributes:
        prompts: turns to write, each after one prompt.
        prompt: tokens of all prompts.
        computed: those of them that the engine has to read; fewer where it shares equal beginnings.
        new: tokens expected to be written.
        at_most: tokens written if every turn runs to its limit.
    """

    prompts: int = 0
    prompt: float = 0.0
    computed: float = 0.0
    new: float = 0.0
    at_most: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.prompts + other.prompts,
            self.prompt + other.prompt,
            self.computed + other.computed,
            self.new + other.new,
            self.at_most + other.at_most,
        )


@dataclass(frozen=True)
class ModelPlan:
    """The share of one model.

    Attributes:
        cells: cells of the grid.
        generation_jobs: jobs that load the model.
        assistant_turns: tokens of the answers.
        user_turns: tokens of the user turns.
        gpus: cards of one job.
        seconds: of all jobs that load the model, one after the other; None where no throughput is stated.
        longest_job_seconds: of the longest of them.
        accelerator_hours: cards times hours; None as above.
        notes: what a person should know.
    """

    cells: int
    generation_jobs: int
    assistant_turns: Tokens
    user_turns: Tokens
    gpus: int
    seconds: float | None
    longest_job_seconds: float | None
    accelerator_hours: float | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The whole study.

    Attributes:
        study: its name.
        simulated: whether a program makes its texts up.
        cells: cells of the grid.
        jobs: jobs by rule, of a run from nothing.
        models: the share of each model.
        tokens: all of them together.
        accelerator_hours: of all models; None where one is not known.
        seconds_in_turn: wall-clock, one job at a time; None as above.
        seconds_at_once: wall-clock, every shard's jobs beside those of the others; None as above.
        cards_at_once: cards needed for that.
        measured: what rests on runs.
        assumed: what rests on assumptions, and which.
    """

    study: str
    simulated: bool
    cells: int
    jobs: dict[str, int]
    models: dict[str, ModelPlan]
    tokens: Tokens
    accelerator_hours: float | None
    seconds_in_turn: float | None
    seconds_at_once: float | None
    cards_at_once: int
    measured: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)

    @property
    def n_jobs(self) -> int:
        """All jobs, the target's own among them, as Snakemake counts them."""
        return sum(self.jobs.values())


def jobs(study: Study) -> dict[str, int]:
    """Jobs by rule of a run from nothing: equal to Snakemake's count."""
    counts = Counter({"all": 1})
    for stage, *names in job_names(study):
        # a folder that is taken as it is has a rule of its own: its files are not known beforehand
        whole = stage == "model" and names[0] in grid.taken(study)
        counts["model_folder" if whole else stage] += 1
    return dict(counts)


def plan(study: Study, measured: Measured | None = None) -> Plan:
    """Plans a study.

    Args:
        study: the study; its sources need not be pinned.
        measured: what runs have left behind; nothing where it is left out.
    """
    known = measured or Measured()
    estimates = {shard: _Shard(study, shard, known) for shard in grid.shards(study)}
    models = {
        model: _model([one for shard, one in estimates.items() if shard.model == model], study, model, known)
        for model in study.models
    }
    tokens = sum((m.assistant_turns + m.user_turns for m in models.values()), Tokens())
    generation = [seconds for m in models.values() if (seconds := m.seconds) is not None]
    complete = len(generation) == len(models)
    others = _other_seconds(study, known, {shard: one.user.prompts for shard, one in estimates.items()})
    chains = [sum(one.longest.values()) for one in estimates.values() if one.longest]
    grounds = basis(study, known)
    hours = [m.accelerator_hours for m in models.values() if m.accelerator_hours is not None]
    line = _training_line(study, known)
    return Plan(
        study=study.name,
        simulated=study.engine.name == "simulated",
        cells=len(grid.cells(study)),
        jobs=jobs(study),
        models=models,
        tokens=tokens,
        accelerator_hours=sum(hours) if len(hours) == len(models) else None,
        seconds_in_turn=sum(generation) + sum(others.values()) if complete else None,
        seconds_at_once=max(chains) + _critical(others) + line if complete else None,
        cards_at_once=sum(models[shard.model].gpus for shard in estimates),
        measured=grounds[0],
        assumed=grounds[1],
    )


def n_items(study: Study, dataset: str, known: Measured) -> int:
    """How many items of a dataset the study takes."""
    config = study.datasets[dataset]
    size = DATASETS.get(config.reader, OTHER_DATASET).items
    if config.n_items is None:
        return known.items.get(dataset, size)
    return min(config.n_items, size) if config.reader in DATASETS else config.n_items


class _Shard:
    """The tokens and seconds of one shard's generation jobs."""

    def __init__(self, study: Study, shard: grid.Shard, known: Measured) -> None:
        self._study, self._known, self.shard = study, known, shard
        self._sharing = study.engine_of(shard.model).prefix_caching
        self.assistant = sum((self._answers(dataset) for dataset in shard.datasets), Tokens())
        self.user = sum((self._cell(cell, first) for cell, first in self._cells()), Tokens())
        resources = study.models[shard.model].resources
        self.seconds: dict[str, float] = {}
        self.longest: dict[str, float] = {}
        if resources is not None:
            self.seconds = {
                "assistant_turns": self._time("assistant_turns", self.assistant, resources),
                "user_turns": self._time("user_turns", self.user, resources),
            }
            if grid.scored_rows(study):
                # texts are read one by one, and nothing is written
                read = self._known_texts() / resources.prefill_tokens_per_second
                timing = known.jobs.get(("likelihood", *shard.name))
                self.seconds["likelihood"] = timing.seconds if timing else resources.load_seconds + read
            self._share(resources)

    def _share(self, resources: Resources) -> None:
        """Several jobs that write the user turns together share the work, and load the model once each."""
        self.longest = dict(self.seconds)
        others = max(0, len(grid.parts(self._study, self.shard)) - 1)
        work = self.seconds["user_turns"] - resources.load_seconds
        self.longest["user_turns"] -= work * others / (others + 1)
        self.seconds["user_turns"] += others * resources.load_seconds

    def _cells(self) -> Iterator[tuple[grid.Cell, bool]]:
        """The cells, and whether it is the first with its prompts."""
        seen: set[tuple[str, str]] = set()
        for cell in grid.cells_of(self._study, self.shard):
            yield cell, (cell.dataset, cell.perturbation) not in seen
            seen.add((cell.dataset, cell.perturbation))

    def _answer(self, dataset: str) -> Lengths:
        """Prompt and answer of an item, in tokens."""
        facts = DATASETS.get(self._study.datasets[dataset].reader, OTHER_DATASET)
        longest = self._study.assistant_turns.max_tokens
        assumed = Lengths(facts.prompt_tokens, ANSWER_SHARE * min(facts.answer_tokens, longest))
        return self._known.answers.get((self.shard.model, dataset), assumed)

    def _answers(self, dataset: str) -> Tokens:
        n, lengths = n_items(self._study, dataset, self._known), self._answer(dataset)
        longest = self._study.assistant_turns.max_tokens
        return Tokens(n, n * lengths.prompt, n * lengths.prompt, n * lengths.new, n * longest)

    def _cell(self, cell: grid.Cell, first: bool) -> Tokens:
        if not generated(self._study, cell.key):
            return Tokens()
        items = n_items(self._study, cell.dataset, self._known)
        n = items * cell.samples
        lengths = self._known.cells.get(cell.key) or self._user_turn(cell)
        computed = n if not self._sharing else items if first else 0
        longest = self._study.probe.sampling_at(cell.temperature).max_tokens
        return Tokens(n, n * lengths.prompt, computed * lengths.prompt, n * lengths.new, n * longest)

    def _user_turn(self, cell: grid.Cell) -> Lengths:
        one = self._answer(cell.dataset)
        longest = self._study.probe.sampling_at(cell.temperature).max_tokens
        return Lengths(
            one.prompt + _context_tokens(self._study, cell.perturbation, one.new),
            min(USER_TURN_SHARE * longest, USER_TURN_TOKENS),
        )

    def _known_texts(self) -> float:
        """Tokens that the likelihood probe reads: each text under two roles, follow-ups also after another answer."""
        found = 0.0
        for dataset in self.shard.datasets:
            followed = self._study.datasets[dataset].reader in FOLLOWED_UP
            one = self._answer(dataset)
            for name in self._study.probe.likelihood.controls if self._study.probe.likelihood else ():
                kind = self._study.probe.perturbations[name].kind
                if not followed and kind in {"human_followup", "other_followup"}:
                    continue
                times = 2 if kind == "continued_answer" else 3
                length = one.prompt + one.new + HEADER_TOKENS + KNOWN_TEXT_TOKENS
                found += times * n_items(self._study, dataset, self._known) * length
        return found

    def _time(self, stage: str, tokens: Tokens, resources: Resources) -> float:
        """Seconds of a job: assumed, or at the speed of a finished one, whose load time and work scale alike."""
        seconds = (
            resources.load_seconds
            + tokens.computed / resources.prefill_tokens_per_second
            + tokens.new / resources.decode_tokens_per_second
        )
        timing = self._known.jobs.get((stage, *self.shard.name))
        if timing is None or not timing.tells_speed:
            return seconds
        done = timing.turns / tokens.prompts
        return seconds * timing.seconds / (resources.load_seconds + done * (seconds - resources.load_seconds))


def _context_tokens(study: Study, perturbation: str, answer: float) -> float:
    """Tokens of a context after the query, user header included."""
    config = study.probe.perturbations[perturbation]
    if isinstance(config, TruncatedAssistant):
        return config.fraction * answer + HEADER_TOKENS
    if isinstance(config, AppendedQuestion | Instructed):
        added = config.question if isinstance(config, AppendedQuestion) else config.instruction
        return answer + TOKENS_PER_WORD * len(added.split()) + HEADER_TOKENS
    return 0.0 if config.kind == "removed_assistant" else answer + HEADER_TOKENS


def _training_seconds(study: Study, model: str, known: Measured) -> float:
    """Seconds of a variant's training; 0 for a model with a source."""
    config = study.models[model].posttrain
    if config is None:
        return 0.0
    done = next((known.jobs[stage, model] for stage in TRAINING if (stage, model) in known.jobs), None)
    return done.seconds if done else TRAINING_SECONDS + config.training.steps * config.training.seconds_per_step


def _training_line(study: Study, known: Measured) -> float:
    """Seconds of the longest line of variants that are trained one on another."""

    def line(model: str) -> float:
        config = study.models[model].posttrain
        return 0.0 if config is None else _training_seconds(study, model, known) + line(config.base)

    return max(map(line, study.models))


def _model(shards: list[_Shard], study: Study, model: str, known: Measured) -> ModelPlan:
    resources = study.models[model].resources
    gpus = resources.gpus if resources else 0
    trained = study.models[model].posttrain
    training = _training_seconds(study, model, known)
    training_cards = int(trained is not None and trained.training.device == "cuda")
    each = [seconds for shard in shards for seconds in shard.seconds.values()]
    longest = max((seconds for shard in shards for seconds in shard.longest.values()), default=0.0)
    notes = []
    served = study.models[model].endpoint is not None
    if served:
        notes.append(f"models.{model}: an endpoint writes the turns: no accelerator-hours are counted")
    if resources is None:
        notes.append(
            f"models.{model}.resources is not given: no time" + ("" if served else " and no accelerator-hours")
        )
    elif longest > 60 * resources.time_minutes:
        notes.append(
            f"models.{model}.resources.time_minutes: {resources.time_minutes}, but its longest job is estimated at "
            f"{longest / 60:.0f} minutes: raise it, set `jobs`, or engine.shard_by: dataset"
        )
    return ModelPlan(
        cells=sum(1 for shard in shards for _ in grid.cells_of(study, shard.shard)),
        generation_jobs=len(shards) * (3 if grid.scored_rows(study) else 2),
        assistant_turns=sum((shard.assistant for shard in shards), Tokens()),
        user_turns=sum((shard.user for shard in shards), Tokens()),
        gpus=gpus,
        seconds=sum(each) + training if resources else None,
        longest_job_seconds=max(longest, training) if resources else None,
        accelerator_hours=0.0
        if served
        else (gpus * sum(each) + training_cards * training) / 3600
        if resources
        else None,
        notes=tuple(notes),
    )


def _other_seconds(study: Study, known: Measured, turns: Mapping[grid.Shard, int]) -> dict[tuple[str, ...], float]:
    by_name = {shard.name: n for shard, n in turns.items()}
    total = sum(turns.values())
    found = {}
    for job in job_names(study):
        if job[0] in JOB_SECONDS:
            read = total if len(job) == 1 else by_name.get(job[2:], 0)
            assumed = JOB_SECONDS[job[0]] + TURN_SECONDS.get(job[0], 0.0) * read
            found[job] = known.jobs[job].seconds if job in known.jobs else assumed
    return found


def _critical(others: Mapping[tuple[str, ...], float]) -> float:
    """Seconds of the longest other job of each stage, one stage after the other."""
    stages = {job[0] for job in others}
    return sum(max(seconds for job, seconds in others.items() if job[0] == stage) for stage in sorted(stages))
