# What the model writes under the user role: all cells of a shard with one model load, or with one for each part where
# several jobs share the items; the parts lie in the store of finished cells.
rule user_turns_part:
    input:
        model=layout.model("{model}"),
        contexts=[
            layout.contexts("{model}", dataset, perturbation)
            for dataset in SHARD.datasets
            for perturbation in study.probe.perturbations
        ],
    output:
        manifest=layout.manifest("user_turns_part", *SHARD.name, "{part}"),
    log:
        layout.log("user_turns_part", *SHARD.name, "{part}"),
    wildcard_constraints:
        part=r"[0-9]+of[0-9]+",
    conda:
        f"../envs/{WRITER}.yaml"
    threads: WRITER_CORES
    resources:
        **LOADS_MODEL,
    params:
        spec=lambda wildcards: specs.user_turns_part(
            study, shard_of(wildcards), wildcards.part, LOCKS[WRITER].sha256
        ),
        triggers=triggers("user_turns_part", WRITER),
    message:
        "Writing the user turns of {wildcards.model}, part {wildcards.part}"
    shell:
        stage("user_turns_part", WRITER) + " --spec {params.spec:q} --log {log}"
        " --manifest {output.manifest} --threads {threads}"


rule user_turns:
    input:
        model=layout.model("{model}"),
        contexts=[
            layout.contexts("{model}", dataset, perturbation)
            for dataset in SHARD.datasets
            for perturbation in study.probe.perturbations
        ],
        parts=lambda wildcards: [
            layout.manifest("user_turns_part", *shard_of(wildcards).name, part)
            for part in grid.parts(study, shard_of(wildcards))
        ],
    output:
        turns=[cell.user_turns for cell in grid.cells_of(study, SHARD)],
        manifest=layout.manifest("user_turns", *SHARD.name),
    log:
        layout.log("user_turns", *SHARD.name),
    conda:
        f"../envs/{WRITER}.yaml"
    threads: WRITER_CORES
    resources:
        **LOADS_MODEL,
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
