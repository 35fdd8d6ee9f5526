"""What supervised and reward training share: the loaded base, the trainer's arguments, the order of rows, progress."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from userturn.artefacts import Row
from userturn.config.training import Lora, Optimiser
from userturn.posttrain import checkpoints
from userturn.posttrain.merge import Adapter, adapter_of
from userturn.seeds import derive


@dataclass(frozen=True)
class Training:
    """What a training is asked to do.

    Attributes:
        base: the base's model folder.
        lora: the adapters.
        optimiser: steps, batches, learning rate.
        seed: derived from the study's.
        threads: cores; another number gives other weights.
        state: where its checkpoints go.
        on_step: told of every finished step, with a note.
    """

    base: Path
    lora: Lora
    optimiser: Optimiser
    seed: int
    threads: int
    state: Path
    on_step: Callable[[int, str], None] = lambda done, note: None

    @property
    def on_cpu(self) -> bool:
        """Whether it runs in float32 on cores."""
        return self.optimiser.device == "cpu"


@dataclass(frozen=True)
class Trained:
    """What a training came to.

    Attributes:
        adapter: the update of the weights.
        history: what the trainer logged, all steps.
        resumed_from: step of the checkpoint that it was taken up from.
    """

    adapter: Adapter
    history: Sequence[Mapping[str, Any]]
    resumed_from: int | None


def training_seed(study_seed: int, variant: str) -> int:
    """The seed of a variant's training: derived, and within what NumPy takes."""
    return derive(study_seed, "posttrain", variant, bits=31)


def ordered(rows: Sequence[Row], wanted: int, seed: int) -> list[Row]:
    """So many rows, in the order in which they are trained: a seeded order of all, again and again, anew each time.

    The order is fixed here and not by the trainer's sampler, so that a training that was killed goes on in it.
    """
    found: list[Row] = []
    epoch = 0
    while len(found) < wanted:
        found += sorted(rows, key=lambda row: derive(seed, "posttrain order", epoch, row["row"]))
        epoch += 1
    return found[:wanted]


def prepare(training: Training) -> None:
    """Sets what PyTorch and Hugging Face's libraries read when a training starts."""
    import torch

    os.environ.update(
        {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TRL_EXPERIMENTAL_SILENCE": "1", "DO_NOT_TRACK": "1"}
    )
    torch.set_num_threads(max(training.threads, 1))
    if not training.on_cpu:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        torch.use_deterministic_algorithms(True)


def load(folder: Path, *, on_cpu: bool) -> tuple[Any, Any]:
    """A model and its tokenizer, from a folder and nowhere else."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    dtype = torch.float32 if on_cpu else torch.bfloat16
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **where)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, **where)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer


def lora_config(lora: Lora) -> Any:
    """PEFT's view of the adapters."""
    from peft import LoraConfig

    return LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=0.0,
        target_modules=list(lora.modules),
        bias="none",
        task_type="CAUSAL_LM",
    )


def arguments(training: Training) -> dict[str, Any]:
    """What both trainers are told: every choice explicit."""
    o = training.optimiser
    return {
        "output_dir": str(training.state),
        "max_steps": o.steps,
        "learning_rate": o.learning_rate,
        "lr_scheduler_type": "linear",
        "warmup_steps": o.warmup_steps,
        "max_grad_norm": o.max_grad_norm,
        "optim": "adamw_torch",
        "weight_decay": 0.0,
        "seed": training.seed,
        "data_seed": training.seed,
        "use_cpu": training.on_cpu,
        "bf16": not training.on_cpu,
        "fp16": False,
        "full_determinism": False,
        "gradient_checkpointing": False,
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": not training.on_cpu,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "save_strategy": "steps",
        "save_steps": o.save_every,
        "save_total_limit": 2,
        "report_to": "none",
        "disable_tqdm": True,
    }


def follow(training: Training) -> Any:
    """A callback that tells progress."""
    from transformers import TrainerCallback

    class Follow(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            shown = {key: logs[key] for key in ("loss", "eval_loss", "reward") if logs and key in logs}
            note = ", ".join(f"{key} {float(value):.4f}" for key, value in shown.items())
            training.on_step(int(state.global_step), note)

    return Follow()


def run(trainer: Any, training: Training) -> Trained:
    """Trains, from the newest checkpoint where there is one."""
    newest = checkpoints.newest(training.state)
    trainer.train(resume_from_checkpoint=None if newest is None else str(newest))
    return Trained(
        adapter=adapter_of(trainer.model),
        history=list(trainer.state.log_history),
        resumed_from=None if newest is None else int(newest.name.removeprefix("checkpoint-")),
    )
