# From pinned sources to items and model folders. What may need Hugging Face's libraries runs in the engine's environment:
# `datasets` brings pandas, and Snakemake imports that at every start wherever it finds it.
rule dataset:
    output:
        dataset=layout.dataset("{dataset}"),
        manifest=layout.manifest("dataset", "{dataset}"),
    log:
        layout.log("dataset", "{dataset}"),
    conda:
        "../envs/engine.yaml"
    params:
        spec=lambda wildcards: specs.dataset(study, wildcards.dataset),
        triggers=triggers("dataset", "engine"),
    message:
        "Reading the items of {wildcards.dataset}"
    shell:
        stage("dataset", "engine")
        + " --spec {params.spec:q} --log {log} --manifest {output.manifest}"


# What a conversion yields is known beforehand; what a repository or a packaged folder holds is not, and its description
# stands for all of it.
CONVERTED = grid.converted(study)


rule model:
    output:
        description=layout.model("{model}"),
        files=[layout.model_folder("{model}") / name for name in layout.CONVERTED_FILES],
        manifest=layout.manifest("model", "{model}"),
    log:
        layout.log("model", "{model}"),
    wildcard_constraints:
        model=layout.one_of(CONVERTED),
    conda:
        "../envs/engine.yaml"
    threads: 2
    resources:
        mem_mb=of_model("mem_mb"),
        runtime=of_model("runtime"),
    params:
        spec=lambda wildcards: specs.model(study, wildcards.model),
        triggers=triggers("model", "engine"),
    message:
        "Preparing the weights of {wildcards.model}"
    shell:
        stage("model", "engine")
        + " --spec {params.spec:q} --log {log} --manifest {output.manifest}"


use rule model as model_folder with:
    output:
        description=layout.model("{model}"),
        manifest=layout.manifest("model", "{model}"),
    wildcard_constraints:
        model=layout.one_of(grid.taken(study)),


rule judge_model:
    output:
        description=layout.judge_model("{judge}"),
        manifest=layout.manifest("judge_model", "{judge}"),
    log:
        layout.log("judge_model", "{judge}"),
    wildcard_constraints:
        judge=layout.one_of(grid.judges_with(study, model=True)),
    conda:
        "../envs/engine.yaml"
    params:
        spec=lambda wildcards: specs.judge_model(study, wildcards.judge),
        triggers=triggers("model", "engine"),
    message:
        "Preparing the model of the judge {wildcards.judge}"
    shell:
        stage("model", "engine")
        + " --spec {params.spec:q} --log {log} --manifest {output.manifest}"


rule gold_set:
    output:
        turns=layout.GOLD_TURNS,
        labels=layout.GOLD_LABELS,
        manifest=layout.manifest("gold_set"),
    log:
        layout.log("gold_set"),
    conda:
        "../envs/workflow.yaml"
    params:
        spec=specs.gold_set(study) if study.gold else "",
        triggers=triggers("gold_set", "workflow"),
    message:
        "Checking the gold set"
    shell:
        stage("gold_set", "workflow")
        + " --spec {params.spec:q} --log {log} --manifest {output.manifest}"
