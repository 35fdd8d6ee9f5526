"""Supervised fine-tuning with TRL on rows whose masks come from our own renderer."""

from __future__ import annotations

from collections.abc import Sequence

from userturn.artefacts import Row
from userturn.posttrain.training import Trained, Training, arguments, follow, load, lora_config, ordered, prepare, run


def sft(training: Training, rows: Sequence[Row]) -> Trained:
    """Trains adapters on rows of token ids and labels.

    Args:
        training: what to do.
        rows: rows of ``data/posttrain/{variant}/rows.jsonl``.
    """
    prepare(training)
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    o = training.optimiser
    model, tokenizer = load(training.base, on_cpu=training.on_cpu)
    train = ordered([row for row in rows if row["split"] == "train"], o.steps * o.batch, training.seed)
    held_out = [row for row in rows if row["split"] == "held_out"]

    def table(found: Sequence[Row]) -> Dataset:
        return Dataset.from_list([{"input_ids": row["input_ids"], "labels": row["labels"]} for row in found])

    config = SFTConfig(
        **arguments(training),
        per_device_train_batch_size=o.batch // o.accumulation,
        gradient_accumulation_steps=o.accumulation,
        per_device_eval_batch_size=o.batch // o.accumulation,
        train_sampling_strategy="sequential",
        eval_strategy="steps" if held_out else "no",
        eval_steps=o.save_every,
        eval_on_start=bool(held_out),
        # rows are as long as the study's config allows, and are cut by our own renderer alone
        max_length=None,
        packing=False,
        eos_token=tokenizer.eos_token,
    )
    trainer = SFTTrainer(
        model=model,
        args=config,
        train_dataset=table(train),
        eval_dataset=table(held_out) if held_out else None,
        processing_class=tokenizer,
        peft_config=lora_config(training.lora),
        callbacks=[follow(training)],
    )
    return run(trainer, training)
