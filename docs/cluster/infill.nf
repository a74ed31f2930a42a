// Fills a file of templates in parts of one file each:
//
//   nextflow run infill.nf --templates templates.jsonl
params.templates = 'templates.jsonl'
params.lines = 1000

process fill {
    cpus 2
    input: path part
    output: path "${part.baseName}.fills.jsonl"
    script: "infill run ${part} -o ${part.baseName}.fills.jsonl --seed 7 --threads ${task.cpus} || [ \$? -eq 3 ]"
}

workflow {
    channel.fromPath(params.templates, checkIfExists: true)
        | splitText(by: params.lines, file: true)
        | fill
        | collectFile(name: 'fills.jsonl', storeDir: '.', sort: { it.name })
}
