# Every perturbation of every answered item, rendered to the prompt that the model will see.
rule contexts:
    input:
        model=layout.model("{model}"),
        dataset=[layout.dataset(dataset) for dataset in SHARD.datasets],
        turns=[layout.assistant_turns("{model}", dataset) for dataset in SHARD.datasets],
    output:
        contexts=[
            layout.contexts("{model}", dataset, perturbation)
            for dataset in SHARD.datasets
            for perturbation in study.probe.perturbations
        ],
        manifest=layout.manifest("contexts", *SHARD.name),
    log:
        layout.log("contexts", *SHARD.name),
    conda:
        "../envs/workflow.yaml"
    params:
        spec=lambda wildcards: specs.contexts(study, shard_of(wildcards)),
        triggers=triggers("contexts", "workflow"),
    message:
        "Perturbing the contexts of {wildcards.model}"
    shell:
        stage("contexts", "workflow")
        + " --spec {params.spec:q} --log {log} --manifest {output.manifest}"
