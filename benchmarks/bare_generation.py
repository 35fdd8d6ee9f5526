"""What a bare script would do: the prompts and parameters of a finished study, one process, one `LLM.generate` call.

Run by `generation_overhead.py` with the engine's Python, in the study's folder. Prints a digest of the texts.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from userturn import layout
from userturn.config.engine import EngineConfig
from userturn.config.perturbations import CONTROLS
from userturn.engine import vllm


def main(model: str, spec: dict, threads: int) -> None:
    """Generates all user turns of a shard without jobs, store, manifests or artefacts."""
    config = EngineConfig.model_validate(spec["engine"])
    vllm.prepare_environment(config, threads)
    from vllm import LLM, SamplingParams

    llm = LLM(model=str(layout.model_folder(model)), **vllm.flags(config))
    facts = json.loads(layout.manifest("user_turns", model).read_text())["facts"]["cells"]
    prompts, params = [], []
    for cell in spec["cells"]:
        if cell["kind"] in CONTROLS:
            continue
        name = (cell["dataset"], cell["perturbation"])
        key = f"{model}/{name[0]}/{name[1]}/{layout.temperature_key(cell['temperature'])}"
        path = layout.user_turns(model, *name, layout.temperature_key(cell["temperature"]))
        seeds = {(r["item"], r["sample"]): r["seed"] for r in map(json.loads, path.read_text().splitlines())}
        for row in map(json.loads, layout.contexts(model, *name).read_text().splitlines()):
            for sample in range(cell["samples"]):
                prompts.append({"prompt_token_ids": row["prompt_token_ids"]})
                params.append(
                    SamplingParams(
                        seed=seeds[row["item"], sample],
                        skip_special_tokens=False,
                        spaces_between_special_tokens=False,
                        **facts[key]["sampling"],
                    )
                )
    outputs = llm.generate(prompts, params, use_tqdm=False)
    texts = json.dumps([output.outputs[0].text for output in outputs])
    print("digest", hashlib.sha256(texts.encode()).hexdigest(), len(outputs))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(Path(sys.argv[2]).read_text()), int(sys.argv[3]))
