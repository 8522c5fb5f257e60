// What every command of the project does with a command line that asks for nothing but words.

export type Question = { readonly kind: 'help' } | { readonly kind: 'wrong'; readonly message: string }

/** Prints the usage where it was asked for or the arguments were wrong, and then there is nothing left to do. */
export function isAnswered<Other extends { readonly kind: string }>(
  command: Question | Other,
  usage: string,
): command is Question {
  if (command.kind === 'help') {
    console.log(usage)
    return true
  }
  if (command.kind === 'wrong' && 'message' in command) {
    console.error(`${command.message}\n\n${usage}`)
    process.exitCode = 2
    return true
  }
  return false
}
