"""A model of a few thousand random weights with a chat template, and conversations that it can be trained on."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from userturn.artefacts import canonical, write_json, write_jsonl
from userturn.environments import engine_python
from userturn.models.folder import write_description

ROOT = Path(__file__).resolve().parents[1]
VARIANT, BASE = "tiny-trained", "tiny"
RENDERER = {"prefix": "stripped", "thinking": None, "template_kwargs": {}, "extra_stop_token_ids": []}
TRAINING = {"steps": 6, "batch": 4, "learning_rate": 0.01, "save_every": 2}
LORA = {"rank": 4, "alpha": 8, "modules": ["q_proj", "v_proj", "down_proj"]}

#: Topic, answer and follow-up; nothing of it is anybody's text but ours.
TALKS = [
    ("How do I boil an egg?", "Eight minutes in boiling water.", "And for a soft yolk?"),
    ("Name a river in Wales.", "The Teifi runs through Cardigan.", "Is the Teifi long?"),
    ("What rhymes with moon?", "June, spoon and tune all do.", "Use spoon in a line, please"),
    ("How far is the moon?", "About 384,000 kilometres away.", "How long would a walk there take?"),
    ("Suggest a name for a cat.", "Biscuit suits a ginger cat well.", "She is black, not ginger"),
    ("Why is the sky blue?", "Air scatters short waves the most.", "Why are sunsets red then?"),
    ("What is a haiku?", "A poem of three short lines.", "Write one about rain"),
    ("How do I sharpen a knife?", "Draw it along a wet stone.", "At which angle?"),
]


def tiny_model(folder: Path) -> Path:
    """Writes the model's folder: two layers of 32, the ChatML template."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from unit.render_tokenizers import FAMILIES

    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=1008,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=1001,
        eos_token_id=1002,
        pad_token_id=1000,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer = FAMILIES["chatml"].tokenizer()
    tokenizer.pad_token = "<|endoftext|>"
    tokenizer.save_pretrained(folder)
    write_description(folder, {"origin": {"kind": "test"}})
    return folder


def conversations() -> list[dict[str, Any]]:
    """Rows that the reader `chats` takes: two exchanges, then a last follow-up."""
    return [
        {
            "messages": [
                {"role": "user", "content": question},
                {"role": "assistant", "content": answer},
                {"role": "user", "content": followup},
                {"role": "assistant", "content": f"That I can tell you: {answer.lower()}"},
                {"role": "user", "content": f"So {followup[0].lower()}{followup[1:]}"},
            ]
        }
        for question, answer, followup in TALKS
    ]


def sft_spec(**training: Any) -> dict[str, Any]:
    return {
        "variant": VARIANT,
        "base": BASE,
        "flags": [],
        "renderer": RENDERER,
        "lora": LORA,
        "training": TRAINING | training,
        "seed": 11,
        "lock_sha256": "0" * 64,
    }


def rl_spec(**more: Any) -> dict[str, Any]:
    return {
        **sft_spec(batch=2),
        "reward": {"accuracy": 1.0, "interactivity": 0.5, "tokens": 0.2},
        "judge": None,
        "user": {"max_tokens": 8},
        "user_renderer": RENDERER,
        "future_turns": 2,
        "generations": 2,
        "max_completion_tokens": 8,
        "max_model_len": 512,
        "temperature": 1.0,
        "beta": 0.0,
        "vllm": False,
        "reward_user_turn": False,
        **more,
    }


def command(stage: str, spec: dict[str, Any], folder: Path) -> list[str]:
    python = ROOT / engine_python()
    log = folder / f"{stage}.log"
    return [
        str(python),
        "-m",
        f"userturn.stages.{stage}",
        "--spec",
        canonical(spec),
        "--log",
        str(log),
        "--threads",
        "1",
    ]


def run_stages(jobs: list[tuple[str, dict[str, Any], Path]]) -> None:
    """Runs training stages in one process of the engine's environment, each in its own folder."""
    asked = json.dumps([[stage, spec, str(folder)] for stage, spec, folder in jobs])
    words = [str(ROOT / engine_python()), str(ROOT / "tests" / "posttrain_driver.py"), asked]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-6000:]


def summary(folder: Path) -> dict[str, Any]:
    """What a training came to."""
    path = folder / "results" / "posttrain" / VARIANT / "summary.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def prepared(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """A study's folder with the tiny base and rows to train on."""
    tiny_model(folder / "data" / "models" / BASE)
    write_jsonl(folder / "data" / "posttrain" / VARIANT / "rows.jsonl", rows)
    write_json(folder / "data" / "posttrain" / VARIANT / "data.json", {"counts": {}, "dropped": {}})
    return folder
