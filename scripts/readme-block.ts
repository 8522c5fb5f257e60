// A part of the README that is made of results: between two lines that say of what and by which command.

export interface Block {
  readonly name: string
  readonly data: string
  readonly command: string
}

/** The README with the block replaced. */
export function withBlock(readme: string, { name, data, command }: Block, text: string): string {
  const start = `<!-- ${name}:start, generated from ${data} by \`npm run ${command}\`; do not edit -->`
  const end = `<!-- ${name}:end -->`
  const from = readme.indexOf(start)
  const to = readme.indexOf(end)
  if (from === -1 || to < from) throw new Error(`README.md needs a line '${start}' and after it a line '${end}'`)
  return `${readme.slice(0, from)}${start}\n\n${text}\n\n${readme.slice(to)}`
}
