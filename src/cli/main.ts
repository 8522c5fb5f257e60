#!/usr/bin/env node
// The executable `millrace`: the process as the command line sees it, and nothing else.
import { EXIT } from './exit-codes.ts'
import type { CliIo, ControlSignal, Screen, StopSignal } from './io.ts'
import { runCli } from './run-cli.ts'

const COLUMNS = 80
const ROWS = 24

const listeners = new Set<(signal: StopSignal) => void>()
const CONTROL_SIGNALS: readonly ControlSignal[] = ['SIGHUP', 'SIGTSTP', 'SIGCONT']

function screen(stream: NodeJS.WriteStream): Screen {
  return {
    write: (text) => void stream.write(text),
    get isTty() {
      return stream.isTTY
    },
    get columns() {
      // Undefined without a terminal, whatever the types say.
      return (stream.columns as number | undefined) ?? COLUMNS
    },
    get rows() {
      return (stream.rows as number | undefined) ?? ROWS
    },
  }
}

const io: CliIo = {
  stdout: screen(process.stdout),
  stderr: screen(process.stderr),
  stdin: process.stdin,
  env: process.env,
  cwd: process.cwd(),
  onSignal(listener) {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
  onControlSignal(listener) {
    for (const signal of CONTROL_SIGNALS) process.on(signal, listener)
    return () => CONTROL_SIGNALS.forEach((signal) => process.off(signal, listener))
  },
  onResize(listener) {
    process.stdout.on('resize', listener)
    return () => process.stdout.off('resize', listener)
  },
  onExit(listener) {
    process.on('exit', listener)
    return () => process.off('exit', listener)
  },
  exit: (code) => process.exit(code),
  rssBytes: () => process.memoryUsage.rss(),
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (listeners.size === 0) process.exit(EXIT.interrupted)
    for (const listener of listeners) listener(signal)
  })
}

// `millrace jobs ls | head`: whoever read has gone, there is nobody left to tell anything.
process.stdout.on('error', () => process.exit(EXIT.done))

const code = await runCli(process.argv.slice(2), io)
// A configuration may hold connections of its own open; the command is done all the same.
process.stdout.write('', () => process.exit(code))
