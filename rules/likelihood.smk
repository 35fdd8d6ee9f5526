# The judge-free contrast: how probable known user turns are after a context.
rule likelihood:
    input:
        model=layout.model("{model}"),
        contexts=[
            layout.contexts("{model}", dataset, perturbation)
            for dataset in SHARD.datasets
            for perturbation in grid.scored_rows(study)
        ],
    output:
        likelihood=[layout.likelihood("{model}", dataset) for dataset in SHARD.datasets],
        manifest=layout.manifest("likelihood", *SHARD.name),
    log:
        layout.log("likelihood", *SHARD.name),
    conda:
        f"../envs/{WRITER}.yaml"
    threads: WRITER_CORES
    resources:
        **LOADS_MODEL,
    params:
        spec=lambda wildcards: specs.likelihood(
            study, shard_of(wildcards), LOCKS[WRITER].sha256
        ),
        triggers=triggers("likelihood", WRITER),
    message:
        "Scoring known user turns with {wildcards.model}"
    shell:
        stage("likelihood", WRITER) + " --spec {params.spec:q} --log {log}"
        " --manifest {output.manifest} --threads {threads}"
