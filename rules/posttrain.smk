# Variants that the study trains itself: what they are trained on, and their weights as ordinary model folders.

# glibc gives memory back and takes it again at every step: training would take twice as long.
MALLOC = (
    "env MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=34359738368"
    " MALLOC_TOP_PAD_=268435456 GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "
)


rule posttrain_data:
    input:
        model=lambda wildcards: layout.model(
            study.models[wildcards.model].posttrain.base
        ),
        dataset=[layout.dataset(dataset) for dataset in study.datasets],
    output:
        rows=layout.training_rows("{model}"),
        data=layout.training_data("{model}"),
        manifest=layout.manifest("posttrain_data", "{model}"),
    log:
        layout.log("posttrain_data", "{model}"),
    wildcard_constraints:
        model=layout.one_of(grid.variants(study)),
    conda:
        "../envs/engine.yaml"
    params:
        spec=lambda wildcards: specs.posttrain_data(study, wildcards.model),
        triggers=triggers("posttrain_data", "engine"),
    message:
        "Preparing what {wildcards.model} is trained on"
    shell:
        stage("posttrain_data", "engine")
        + " --spec {params.spec:q} --log {log} --manifest {output.manifest}"


# Another number of threads gives other weights, and two trainings at once take four times as long: all cores to one.
rule posttrain:
    input:
        needs=lambda wildcards: grid.training_needs(study, wildcards.model),
        rows=layout.training_rows("{model}"),
        data=layout.training_data("{model}"),
    output:
        description=layout.model("{model}"),
        curve=layout.training_curve("{model}"),
        summary=layout.training_summary("{model}"),
        manifest=layout.manifest("posttrain", "{model}"),
    log:
        layout.log("posttrain", "{model}"),
    wildcard_constraints:
        model=layout.one_of(grid.variants(study, "sft")),
    conda:
        "../envs/engine.yaml"
    threads: WRITER_CORES
    resources:
        **LOADS_MODEL,
    params:
        spec=lambda wildcards: specs.posttrain(
            study, wildcards.model, LOCKS["engine"].sha256
        ),
        triggers=triggers("posttrain", "engine"),
    message:
        "Training {wildcards.model}"
    shell:
        MALLOC + stage("posttrain", "engine") + " --spec {params.spec:q} --log {log}"
        " --manifest {output.manifest} --threads {threads}"


rule posttrain_rl:
    input:
        needs=lambda wildcards: grid.training_needs(study, wildcards.model),
        rows=layout.training_rows("{model}"),
        data=layout.training_data("{model}"),
    output:
        description=layout.model("{model}"),
        curve=layout.training_curve("{model}"),
        summary=layout.training_summary("{model}"),
        manifest=layout.manifest("posttrain_rl", "{model}"),
    log:
        layout.log("posttrain_rl", "{model}"),
    wildcard_constraints:
        model=layout.one_of(grid.variants(study, "rl")),
    conda:
        "../envs/engine.yaml"
    threads: WRITER_CORES
    resources:
        **LOADS_MODEL,
    params:
        spec=lambda wildcards: specs.posttrain_rl(
            study, wildcards.model, LOCKS["engine"].sha256
        ),
        triggers=triggers("posttrain_rl", "engine"),
    message:
        "Training {wildcards.model} on rewards"
    shell:
        MALLOC
        + stage("posttrain_rl", "engine")
        + " --spec {params.spec:q} --log {log}"
        " --manifest {output.manifest} --threads {threads}"
