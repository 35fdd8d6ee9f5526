# The page.
rule report:
    input:
        numbers=layout.NUMBERS,
        dataset=[layout.dataset(dataset) for dataset in study.datasets],
        models=[layout.model(model) for model in study.models],
        contexts=[
            layout.contexts(model, dataset, perturbation)
            for model in study.models
            for dataset in study.datasets
            for perturbation in study.probe.perturbations
        ],
        turns=[cell.user_turns for cell in grid.cells(study)],
        judgements=[
            cell.judgements(judge)
            for judge in study.judges
            for cell in grid.cells(study)
        ],
        manifests=[layout.manifest("dataset", dataset) for dataset in study.datasets]
        + [layout.manifest("analyse")]
        + [layout.manifest("user_turns", *shard.name) for shard in grid.shards(study)]
        + [
            layout.manifest("judge", judge, *shard.name)
            for judge in study.judges
            for shard in grid.shards(study)
        ],
    output:
        page=layout.REPORT,
        manifest=layout.manifest("report"),
    log:
        layout.log("report"),
    conda:
        "../envs/workflow.yaml"
    params:
        spec=specs.report(study),
        triggers=triggers("report", "workflow"),
    message:
        "Writing the report"
    shell:
        stage("report", "workflow")
        + " --spec {params.spec:q} --log {log} --manifest {output.manifest}"
