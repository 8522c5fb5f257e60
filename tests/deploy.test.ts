// The examples of deploy/: they parse, the commands and flags in them exist, and a stop leaves time for a drain.
import { execFileSync, spawnSync } from 'node:child_process'
import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { binPath } from '../scripts/run-stage.ts'
import { buildProgram } from '../src/cli/program.ts'
import { parseDuration } from '../src/core/duration.ts'
import type { Duration } from '../src/core/duration.ts'
import { DEFAULTS } from '../src/core/limits.ts'
import { ensureDebianPackage } from './support/debian-package.ts'
import { REPOSITORY_FILES, ROOT, exists, readText } from './tidy/source.ts'

const files = REPOSITORY_FILES.filter((path) => path.startsWith('deploy/'))
const yaml = files.filter((path) => path.endsWith('.yaml'))
const units = files.filter((path) => path.endsWith('.service'))
const screen = { write: () => undefined, isTty: false, columns: 80 }
const program = buildProgram({ parts: { io: { stdout: screen, stderr: screen } } as never, exitCode: 0 }, '0.0.0')

/** Each command line of Millrace in a file, as words. */
function commandsIn(path: string): readonly (readonly string[])[] {
  const text = readText(path)
  const lines = [...text.matchAll(/^(?:ExecStart|command)=.*main\.js (.+)$/gm)].map(([, words = '']) =>
    words.split(' '),
  )
  const arrays = [...text.matchAll(/^(?:CMD| +command:) (\[['"](?:work|supervise).*\])$/gm)].map(
    ([, list = '']) => JSON.parse(list.replaceAll("'", '"')) as readonly string[],
  )
  const blocks = [...text.matchAll(/^ +args:\n((?: +(?:- |#).+\n)+)/gm)].map(([, list = '']) =>
    [...list.matchAll(/- '?([^'\n]+)'?/g)].map(([, word = '']) => word),
  )
  return [...lines, ...arrays, ...blocks]
}

const commands = files.flatMap((path) => commandsIn(path).map((words) => ({ path, words, line: words.join(' ') })))

describe('P3 examples', () => {
  test('P3 every kind of example has a command line that this test found', () => {
    const found = new Set(commands.map(({ path }) => path))
    expect([...found].sort()).toEqual(
      [
        'deploy/docker/Dockerfile',
        'deploy/docker/compose.yaml',
        'deploy/kubernetes/worker.yaml',
        'deploy/supervisord/millrace.conf',
        'deploy/systemd/millrace-supervise.service',
        'deploy/systemd/millrace-worker@.service',
      ].sort(),
    )
  })

  test.each(commands)('P3 the flags of $path exist: $line', ({ words }) => {
    const [name = '', ...rest] = words
    const command = program.commands.find((one) => one.name() === name)
    if (command === undefined) throw new Error(`there is no command ${name}`)
    const flags = rest.filter((word) => word.startsWith('--'))
    expect(flags.length).toBeGreaterThan(0)
    expect(flags.filter((flag) => optionOf(command, flag) === undefined)).toEqual([])
    for (const [at, word] of rest.entries()) {
      const option = word.startsWith('--') ? optionOf(command, word) : undefined
      if (option === undefined || option.isBoolean()) continue
      const value = rest[at + 1] ?? ''
      expect(value, word).toMatch(/^[^-]/)
      // Throws what the command line would say.
      option.parseArg?.(value, undefined)
    }
  })

  test.each(yaml)('P3 %s is YAML', (path) => {
    const { status, stderr } = spawnSync(process.execPath, [binPath('oxfmt'), '--check', path], {
      cwd: ROOT,
      encoding: 'utf8',
    })
    expect(status, stderr).toBe(0)
  })

  test('P3 systemd takes the units as they are', () => {
    ensureDebianPackage({ name: 'systemd', program: '/usr/bin/systemd-analyze' })
    expect(units).toHaveLength(2)
    const { stdout, stderr } = spawnSync('/usr/bin/systemd-analyze', ['verify', ...units], {
      cwd: ROOT,
      encoding: 'utf8',
    })
    // Node may be somewhere else on this machine; other units of it are none of our business.
    const said = `${stdout}${stderr}`
      .split('\n')
      .filter((line) => /millrace/.test(line) && !/not executable/.test(line))
    expect(said).toEqual([])
  })

  test.each(commands.filter(({ path }) => !path.endsWith('Dockerfile')))(
    'P3 $path waits longer for a stop than a drain may take',
    ({ path, words }) => {
      const text = readText(path)
      const stop = /(?:TimeoutStopSec=|stopwaitsecs=|terminationGracePeriodSeconds: |stop_grace_period: )(\d+)/.exec(
        text,
      )
      const at = words.indexOf('--deadline')
      const own = words[0] === 'supervise' ? DEFAULTS.supervisorDrainMs : DEFAULTS.drainDeadlineMs
      const drainMs = at < 0 ? own : parseDuration(words[at + 1] as Duration, '--deadline')
      // A supervisor has its own worker, its port and its stores to end after its children.
      const restMs = words[0] === 'supervise' ? 25_000 : 10_000
      expect(Number(stop?.[1]) * 1000).toBeGreaterThanOrEqual(drainMs + restMs)
    },
  )

  test('P3 Kubernetes can tell that the image does not run as root', () => {
    const user = /^USER (\S+)$/m.exec(readText('deploy/docker/Dockerfile'))?.[1]
    expect(user).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    const worker = readText('deploy/kubernetes/worker.yaml')
    const [uid, gid] = ['runAsUser', 'runAsGroup'].map((name) => new RegExp(`${name}: (\\d+)`).exec(worker)?.[1])
    expect(`${uid}:${gid}`).toBe(user)
  })

  test('P3 a worker ends by itself before the container is killed for its memory', () => {
    const [, limit = ''] = /limits: \{ memory: (\d+)Mi \}/.exec(readText('deploy/kubernetes/worker.yaml')) ?? []
    const words = commandsIn('deploy/kubernetes/worker.yaml')[0] ?? []
    const own = Number(words[words.indexOf('--memory') + 1])
    expect(own).toBeGreaterThan(0)
    expect(own).toBeLessThan(Number(limit))
  })

  test('P3 what is secret or made anew stays out of the image', () => {
    const left = readText('deploy/docker/Dockerfile.dockerignore').split('\n')
    expect(left).toEqual(expect.arrayContaining(['.git', '.env', '**/node_modules']))
  })

  test('P3 paths in the examples are those of the package', () => {
    const { bin } = JSON.parse(readText('package.json')) as { readonly bin: Readonly<Record<string, string>> }
    const named = files.flatMap((path) => readText(path).match(/node_modules\/millrace\/[\w./-]+/g) ?? [])
    expect(new Set(named)).toEqual(new Set([`node_modules/millrace/${bin['millrace']}`]))
    const [, dockerfile = ''] = /dockerfile: (\S+)/.exec(readText('deploy/docker/compose.yaml')) ?? []
    expect(exists(dockerfile)).toBe(true)
    const health = /HEALTHCHECK[^]*?"(fetch\([^"]+)"/.exec(readText(dockerfile))?.[1] ?? 'no health check'
    // As a shell would run it, with nobody to answer.
    const { status } = spawnSync(process.execPath, ['-e', health.replace('9464', '1')])
    expect(status).toBe(1)
    expect(execFileSync(process.execPath, ['--check', '-'], { input: health }).toString()).toBe('')
  })
})

function optionOf(command: Command, flag: string) {
  return [...command.options, ...program.options].find(({ long }) => long === flag)
}
