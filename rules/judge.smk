# One judge's labels of all cells of a shard.
rule judge:
    input:
        embedder=layout.embedder("{judge}"),
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
    params:
        spec=lambda wildcards: specs.judge(study, wildcards.judge, shard_of(wildcards)),
        triggers=triggers("judge", "engine"),
    message:
        "Judging the user turns of {wildcards.model} ({wildcards.judge})"
    shell:
        stage("judge", "engine")
        + " --spec {params.spec:q} --log {log} --manifest {output.manifest}"
