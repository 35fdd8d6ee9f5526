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
        "../envs/engine.yaml"
    threads: workflow.cores or 1
    params:
        spec=lambda wildcards: specs.user_turns(
            study, shard_of(wildcards), LOCKS["engine"].sha256
        ),
        triggers=triggers("user_turns", "engine"),
    message:
        "Writing the user turns of {wildcards.model}"
    shell:
        stage("user_turns", "engine") + " --spec {params.spec:q} --log {log}"
        " --manifest {output.manifest} --threads {threads}"
