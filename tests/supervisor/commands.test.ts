// Commands through the store: obeyed once, answered, logged; forged ones are refused.
import { describe, expect, test } from 'vitest'
import { signCommand } from '../../src/core/command.ts'
import type { Command, CommandArgs, CommandKind } from '../../src/core/command.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { COMMANDS_SPACE, COMMAND_LOG_SPACE, postCommand } from '../../src/supervisor/command-notes.ts'
import type { CommandLogEntry } from '../../src/supervisor/command-notes.ts'
import { fakeSupervisor } from './fake.ts'
import type { FakeWorld } from './fake.ts'

const SECRET = 'correct horse battery staple'

async function setup(secret?: string) {
  const world = await fakeSupervisor({ ...(secret !== undefined && { secret }) })
  await world.supervisor.start()
  await world.pass(1_000)
  const runtime = createRuntime({ clock: world.clock })
  const post = (kind: CommandKind, args: CommandArgs = {}, with_: string | undefined = secret): Promise<Command> =>
    postCommand(world.backend, runtime, { supervisor: 'web1', kind, args, by: 'ada' }, with_)
  return { ...world, post }
}

async function log({ backend }: FakeWorld): Promise<readonly CommandLogEntry[]> {
  return (await backend.notes.list(COMMAND_LOG_SPACE, 200)).map(({ value }) => JSON.parse(value) as CommandLogEntry)
}

describe('commands', () => {
  test('P1 each command is carried out, answered and logged', async () => {
    const world = await setup(SECRET)
    const { supervisor, post, pass, processes } = world
    await post('quiet')
    await pass(1_500)
    expect(supervisor.state).toBe('quiet')
    await post('resume')
    await pass(1_500)
    expect(supervisor.state).toBe('running')
    await post('scale', { pool: 'mail', processes: 3 })
    await pass(1_500)
    expect(supervisor.status().pools[0]).toMatchObject({ wanted: 3, pinned: true })
    await post('scale', { pool: 'mail', processes: null })
    await pass(1_500)
    expect(supervisor.status().pools[0]).toMatchObject({ pinned: false })
    await post('restart', { child: 'web1/mail-1' })
    await pass(2_000)
    expect(processes[0]!.kinds).toContain('drain')
    processes[0]!.exit()
    await post('stop', { child: 'web1/mail-2' })
    await pass(1_500)
    expect(processes[1]!.told.at(-1)).toMatchObject({ kind: 'drain' })
    expect(supervisor.status().pools[0]!.wanted).toBe(2)
    await post('scale', { pool: 'post', processes: 1 })
    await pass(1_500)
    await post('stop', { deadlineMs: 1_000 })
    await pass(4_000)
    await supervisor.stopped
    expect((await log(world)).map(({ kind, outcome, by, reason }) => [kind, outcome, by, reason])).toEqual([
      ['quiet', 'done', 'ada', 'all: takes no new jobs'],
      ['resume', 'done', 'ada', 'all: takes new jobs again'],
      ['scale', 'done', 'ada', 'pool mail: 2 to 3 processes'],
      ['scale', 'done', 'ada', 'pool mail: follows the autoscaler'],
      ['restart', 'done', 'ada', 'web1/mail-1: 1 restarted'],
      ['stop', 'done', 'ada', 'web1/mail-2: drains'],
      ['scale', 'failed', 'ada', 'there is no pool "post" here; there are: mail'],
      ['stop', 'done', 'ada', 'all: drain, then the supervisor ends'],
    ])
    expect(await world.backend.notes.list(COMMANDS_SPACE, 10)).toEqual([])
  })

  test('P1 a forged, an unsigned, an expired and a repeated command are refused, counted and logged; the secret is nowhere', async () => {
    const world = await setup(SECRET)
    const { supervisor, backend, clock, pass, post, lines } = world
    const put = (key: string, value: unknown) =>
      backend.notes.put({ space: COMMANDS_SPACE, key: `web1:${key}`, value: JSON.stringify(value) })
    await post('quiet', {}, 'the secret of somebody else')
    // `undefined` would mean the right one.
    const issuedAtMs = clock.nowMs()
    const base = {
      supervisor: 'web1',
      kind: 'stop',
      args: {},
      by: 'eve',
      issuedAtMs,
      expiresAtMs: issuedAtMs + 1_000,
    } as const
    await put('unsigned', { ...base, id: 'unsigned' })
    await put('expired', signCommand({ ...base, id: 'expired', expiresAtMs: issuedAtMs - 1 }, SECRET))
    await put('gibberish', 'gibberish')
    const good = signCommand({ ...base, kind: 'resume', id: 'good', expiresAtMs: issuedAtMs + 60_000 }, SECRET)
    await put('good', good)
    await pass(1_500)
    await put('good', good)
    await put('good-again', good)
    await pass(1_500)
    expect(supervisor.status()).toMatchObject({ state: 'running', commandsRefused: 6 })
    const reasons = (await log(world)).filter(({ outcome }) => outcome === 'refused').map(({ reason }) => reason)
    expect(reasons.sort()).toEqual([
      'it cannot be read',
      'it has expired',
      'it is not signed',
      // Twice under one id: the second is written over the first.
      'it was said before',
      'its signature is wrong',
    ])
    expect(lines.filter(({ message }) => message === 'a command is refused')).toHaveLength(6)
    const everything = JSON.stringify([lines, await log(world), supervisor.status()])
    expect(everything).not.toContain(SECRET)
  })

  test('P1 whoever forges many fills neither the store nor the supervisor', async () => {
    const world = await setup(SECRET)
    for (let no = 0; no < 150; no++) {
      await world.backend.notes.put({ space: COMMANDS_SPACE, key: `web1:forged-${no}`, value: '{}' })
    }
    await world.pass(5_000)
    expect(world.supervisor.status().commandsRefused).toBe(150)
    expect(await log(world)).toHaveLength(100)
  })

  test('P1 without a secret whoever may write the store may command; a command for another is left alone', async () => {
    const { supervisor, post, pass, backend } = await setup()
    await backend.notes.put({ space: COMMANDS_SPACE, key: 'web2:other', value: '{}' })
    await post('quiet')
    await pass(1_500)
    expect(supervisor.state).toBe('quiet')
    expect((await backend.notes.list(COMMANDS_SPACE, 10)).map(({ key }) => key)).toEqual(['web2:other'])
  })
})
