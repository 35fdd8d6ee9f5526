# The model's own answers, by deterministic decoding, and their task scores.
rule assistant_turns:
    input:
        model=layout.model("{model}"),
        dataset=[layout.dataset(dataset) for dataset in SHARD.datasets],
    output:
        turns=[layout.assistant_turns("{model}", dataset) for dataset in SHARD.datasets],
        manifest=layout.manifest("assistant_turns", *SHARD.name),
    log:
        layout.log("assistant_turns", *SHARD.name),
    conda:
        f"../envs/{WRITER}.yaml"
    threads: WRITER_CORES
    resources:
        **LOADS_MODEL,
    params:
        spec=lambda wildcards: specs.assistant_turns(
            study, shard_of(wildcards), LOCKS[WRITER].sha256
        ),
        triggers=triggers("assistant_turns", WRITER),
    message:
        "Writing the assistant turns of {wildcards.model}"
    shell:
        stage("assistant_turns", WRITER) + " --spec {params.spec:q} --log {log}"
        " --manifest {output.manifest} --threads {threads}"


rule scores:
    input:
        dataset=[layout.dataset(dataset) for dataset in SHARD.datasets],
        turns=[layout.assistant_turns("{model}", dataset) for dataset in SHARD.datasets],
    output:
        scores=[layout.scores("{model}", dataset) for dataset in SHARD.datasets],
        manifest=layout.manifest("scores", *SHARD.name),
    log:
        layout.log("scores", *SHARD.name),
    conda:
        "../envs/engine.yaml"
    params:
        spec=lambda wildcards: specs.scores(study, shard_of(wildcards)),
        triggers=triggers("scores", "engine"),
    message:
        "Scoring the assistant turns of {wildcards.model}"
    shell:
        stage("scores", "engine")
        + " --spec {params.spec:q} --log {log} --manifest {output.manifest}"
