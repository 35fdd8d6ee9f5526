# What the model writes under the user role: all cells of a shard with one model load.
rule user_turns:
    input:
        model=layout.model("{model}"),
        contexts=[
            layout.contexts("{model}", dataset, perturbation)
            for dataset in SHARD.datasets
            for perturbation in study.probe.perturbations
        ],
    output:
        turns=[cell.user_turns for cell in grid.cells_of(study, SHARD)],
        manifest=layout.manifest("user_turns", *SHARD.name),
    log:
        layout.log("user_turns", *SHARD.name),
    conda:
        f"../envs/{WRITER}.yaml"
    threads: WRITER_CORES
    params:
        spec=lambda wildcards: specs.user_turns(
            study, shard_of(wildcards), LOCKS[WRITER].sha256
        ),
        triggers=triggers("user_turns", WRITER),
    message:
        "Writing the user turns of {wildcards.model}"
    shell:
        stage("user_turns", WRITER) + " --spec {params.spec:q} --log {log}"
        " --manifest {output.manifest} --threads {threads}"
