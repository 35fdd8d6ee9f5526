# Judges: training where a judge is trained here, their labels of all cells of a shard, and of the gold set.
rule judge_training:
    input:
        model=layout.judge_model("{judge}"),
    output:
        examples=layout.judge_examples("{judge}"),
        fluency=layout.judge_fluency("{judge}"),
        validation=layout.judge_validation("{judge}"),
        held_out=layout.judge_held_out("{judge}"),
        manifest=layout.manifest("judge_training", "{judge}"),
    log:
        layout.log("judge_training", "{judge}"),
    wildcard_constraints:
        judge=layout.one_of(grid.judges_with(study, trained=True)),
    conda:
        "../envs/engine.yaml"
    threads: CORES
    params:
        spec=lambda wildcards: specs.judge_training(study, wildcards.judge),
        triggers=triggers("judge_training", "engine"),
    message:
        "Training the judge {wildcards.judge}"
    shell:
        stage("judge_training", "engine") + " --spec {params.spec:q} --log {log}"
        " --manifest {output.manifest} --threads {threads}"


rule judge:
    input:
        judge=lambda wildcards: grid.judge_needs(study, wildcards.judge),
        dataset=[layout.dataset(dataset) for dataset in SHARD.datasets],
        contexts=[
            layout.contexts("{model}", dataset, perturbation)
            for dataset in SHARD.datasets
            for perturbation in study.probe.perturbations
        ],
        turns=[cell.user_turns for cell in grid.cells_of(study, SHARD)],
    output:
        judgements=[cell.judgements("{judge}") for cell in grid.cells_of(study, SHARD)],
        manifest=layout.manifest("judge", "{judge}", *SHARD.name),
    log:
        layout.log("judge", "{judge}", *SHARD.name),
    conda:
        "../envs/engine.yaml"
    threads: CORES
    params:
        spec=lambda wildcards: specs.judge(study, wildcards.judge, shard_of(wildcards)),
        triggers=triggers("judge", "engine"),
    message:
        "Judging the user turns of {wildcards.model} ({wildcards.judge})"
    shell:
        stage("judge", "engine") + " --spec {params.spec:q} --log {log}"
        " --manifest {output.manifest} --threads {threads}"


rule gold:
    input:
        judge=lambda wildcards: grid.judge_needs(study, wildcards.judge),
        turns=layout.GOLD_TURNS,
    output:
        judgements=layout.gold("{judge}"),
        manifest=layout.manifest("gold", "{judge}"),
    log:
        layout.log("gold", "{judge}"),
    wildcard_constraints:
        judge=layout.one_of(grid.judges_with(study, gold=True)),
    conda:
        "../envs/engine.yaml"
    threads: CORES
    params:
        spec=lambda wildcards: specs.gold(study, wildcards.judge),
        triggers=triggers("gold", "engine"),
    message:
        "Judging the gold set ({wildcards.judge})"
    shell:
        stage("gold", "engine") + " --spec {params.spec:q} --log {log}"
        " --manifest {output.manifest} --threads {threads}"
