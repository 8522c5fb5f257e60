// `millrace dead`: dead letters are shown to all; what is replayed or removed is counted and asked about first.
import { describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { UNKNOWN_ID, boom, mail, noop, setup, workOff } from './harness.ts'
import type { Setup } from './harness.ts'

async function withDead(...reasons: readonly string[]): Promise<Setup & { readonly ids: readonly string[] }> {
  const system = await setup()
  const ids: string[] = []
  for (const reason of reasons) ids.push((await system.mill.enqueue(boom, reason)).id)
  await workOff(system.mill, ids)
  // Nothing is to run what is replayed.
  await system.mill.queues.pause('fragile')
  // And what has failed is older than nothing.
  const failedMs = Date.now()
  await until('the next millisecond', () => Date.now() > failedMs, { pollMs: 1 })
  return { ...system, ids }
}

describe('dead ls and show', () => {
  test('list and filter', async () => {
    const { run, ids } = await withDead('connection refused', 'disk full')
    const { code, out } = await run('dead ls')
    expect(out).toMatch(new RegExp(`^${ids[1]}  fragile  boom +1/3  20\\S+Z  Error: disk full$`, 'm'))
    expect(code).toBe(0)
    const { json } = await run(['dead', 'ls', '--error', 'REFUSED', '--json'])
    expect(json).toMatchObject({ jobs: [{ id: ids[0], status: 'failed' }] })
    expect(await run('dead ls --older-than 1h')).toMatchObject({ code: 0, out: 'no dead letters\n' })
  })

  test('show has payload, attempts and stack', async () => {
    const { run, ids } = await withDead('disk full')
    const { out } = await run(['dead', 'show', ids[0]!])
    expect(out).toMatch(/^payload +"disk full"$/m)
    expect(out).toMatch(/^ +1 {2}failed .*disk full$/m)
    expect(out).toMatch(/^ {4}at /m)
    const { json } = await run(['dead', 'show', ids[0]!, '--json'])
    expect(json).toMatchObject({
      job: { id: ids[0], lastError: { message: 'disk full' } },
      attempts: [{ status: 'failed' }],
    })
  })

  test('show ends with 3 for a job that is not dead, and says what it is', async () => {
    const { mill, run } = await withDead()
    const { id } = await mill.enqueue(noop, undefined, { delay: '1h' })
    expect(await run(['dead', 'show', id])).toMatchObject({
      code: 3,
      err: expect.stringContaining('it is scheduled') as string,
    })
    expect(await run(['dead', 'show', UNKNOWN_ID])).toMatchObject({ code: 3 })
  })
})

describe('dead replay', () => {
  test('by id', async () => {
    const { mill, run, ids } = await withDead('a')
    expect(await run(['dead', 'replay', ids[0]!, '--actor', 'ada', '--yes'])).toMatchObject({
      code: 0,
      out: '1 dead letter: 1 replayed\n',
    })
    expect(await mill.jobs.get(ids[0]!)).toMatchObject({ status: 'queued', replayedBy: 'ada' })
    expect(await run(['dead', 'replay', ids[0]!, '--yes'])).toMatchObject({
      code: 4,
      err: expect.stringContaining('it is queued') as string,
    })
    expect(await run(['dead', 'replay', UNKNOWN_ID, '--yes'])).toMatchObject({ code: 3 })
  })

  test('by filter asks with a count and samples, and does exactly that', async () => {
    const { mill, run, ids } = await withDead('connection refused', 'disk full', 'connection refused')
    const { code, err } = await run(['dead', 'replay', '--error', 'refused'], { tty: true, answer: 'yes' })
    expect(err).toContain('This will replay 2 jobs. Go on? [y/N]')
    expect(err).toContain(`${ids[0]} boom in fragile, failed`)
    expect(code).toBe(0)
    expect((await mill.deadLetters.list()).items.map(({ id }) => id)).toEqual([ids[1]])
  })

  test('as new jobs leaves the failed ones', async () => {
    const { mill, run } = await withDead('a', 'b')
    expect((await run('dead replay --all --as-new --per-second 1000 --yes --json')).json).toMatchObject({
      dryRun: false,
      matched: 2,
      jobs: [{ answer: 'replayed' }, { answer: 'replayed' }],
    })
    expect((await mill.jobs.list({ status: 'queued' })).items).toHaveLength(2)
    expect((await mill.deadLetters.list()).items).toHaveLength(2)
  })
})

describe('dead rm and prune', () => {
  test('rm removes dead letters and nothing else', async () => {
    const { mill, run, ids } = await withDead('a', 'b')
    const { id } = await mill.enqueue(mail, { to: 'ada' }, { delay: '1h' })
    expect(await run(['dead', 'rm', ids[0]!, '--yes'])).toMatchObject({ code: 0, out: '1 dead letter: 1 removed\n' })
    expect(await run(['dead', 'rm', id, '--yes'])).toMatchObject({ code: 4 })
    expect((await run('dead rm --all --yes --json')).json).toMatchObject({
      matched: 1,
      jobs: [{ id: ids[1], answer: 'removed' }],
    })
    expect(await mill.jobs.get(id)).not.toBeNull()
  })

  test('prune removes by age', async () => {
    const { mill, run } = await withDead('a', 'b')
    expect(await run('dead prune --yes')).toMatchObject({ code: 0, out: 'no dead letters removed\n' })
    expect((await run('dead prune --older-than 0ms --queue fragile --yes --json')).json).toMatchObject({
      matched: 2,
      removed: 2,
    })
    expect((await mill.deadLetters.list()).items).toEqual([])
  })
})

describe('what cannot be undone', () => {
  const lines = ['dead replay --all', 'dead rm --all', 'dead prune --older-than 0ms']

  test.each(lines)('%s is refused without a terminal and without --yes', async (line) => {
    const { mill, run } = await withDead('a')
    const { code, err } = await run(`${line} --json`)
    expect(JSON.parse(err)).toMatchObject({
      error: { code: 'NEEDS_YES', message: expect.stringContaining('--yes') as string },
    })
    expect(code).toBe(2)
    expect((await mill.deadLetters.list()).items).toHaveLength(1)
  })

  test.each(lines)('%s is not done when the answer is no, or none', async (line) => {
    const { mill, run } = await withDead('a')
    expect(await run(line, { tty: true, answer: 'n' })).toMatchObject({
      code: 1,
      err: expect.stringContaining('nothing was done') as string,
    })
    expect(await run(line, { tty: true })).toMatchObject({ code: 1 })
    expect((await mill.deadLetters.list()).items).toHaveLength(1)
  })

  test.each(lines)('%s --dry-run writes nothing', async (line) => {
    const { mill, run } = await withDead('a')
    expect((await run(`${line} --dry-run`)).out).toMatch(/^would (replay|remove) 1 (job|dead letter)\n$/)
    expect((await run(`${line} --dry-run --json`)).json).toMatchObject({ dryRun: true, matched: 1 })
    expect((await mill.deadLetters.list()).items).toHaveLength(1)
  })
})
