// What a supervisor does with real processes: its own death, leaks, crash loops, rolling restarts, and commands from
// elsewhere. On PostgreSQL; what is promised on every store is in tests/stores/supervised.ts.
import { describe, expect, test } from 'vitest'
import type { SupervisorRecord } from '../../src/index.ts'
import { verifyWebhook } from '../../src/index.ts'
import { httpReceiver } from '../alerts/receivers.ts'
import { start } from '../cli/harness.ts'
import { usePostgres } from '../postgres/features/support.ts'
import { untilEmpty } from '../stores/supervised.ts'
import { until } from '../support/until.ts'
import { JOBS, isRunning, untilWorking, useSupervisors } from './harness.ts'

const place = usePostgres()
const world = useSupervisors()
const SECRET = 'correct horse battery staple'

describe('supervised processes', { timeout: 60_000 }, () => {
  test('P1 when the supervisor is killed its processes finish what they run, end, and lose nothing', async () => {
    await using at = await place()
    const mill = await at.process(JOBS)
    const here = world()
    const pools = { mixed: { processes: 2, concurrency: 5 } }
    const first = here.start({ address: at.address, pools })
    await untilWorking(first, 2)
    const handles = await mill.enqueueMany(Array.from({ length: 60 }, () => ['plain', 300] as const))
    await until('jobs to run', () => here.runs().length >= 10)
    const orphans = first.workers()
    first.signal('SIGKILL')
    await until('the orphans to end', () => orphans.every((pid) => !isRunning(pid)))
    const [{ counts } = { counts: undefined }] = await mill.jobs.counts('faults')
    expect(counts).toMatchObject({ running: 0 })
    expect(counts!.completed, 'what ran was finished').toBe(here.runs().length)
    expect(counts!.queued + counts!.completed).toBe(60)

    const second = here.start({ address: at.address, pools })
    for (const handle of handles) await handle.result()
    const once = new Set(here.runs().map(({ job }) => job))
    expect([here.runs().length, once.size]).toEqual([60, 60])
    second.signal('SIGTERM')
    expect(await second.exit).toBe(0)
  })

  test('P1 a process that leaks past its limit is drained and replaced, and its jobs are not run twice', async () => {
    await using at = await place()
    const mill = await at.process(JOBS)
    const here = world()
    const one = here.start({ address: at.address, pools: { mixed: { processes: 1, concurrency: 3, memoryMb: 250 } } })
    await untilWorking(one, 1)
    const running = await mill.enqueue('plain', 1_500)
    const leak = await mill.enqueue('leak', 250)
    await leak.result()
    await until('the leak to be seen', () => one.said('worker process is recycled').length === 1)
    expect(one.said('worker process is recycled')[0]).toMatchObject({ reason: 'memory', pool: 'mixed' })
    const [leaky] = one.workers()
    await running.result()
    await until('the replacement to work', () => one.workers().length === 1 && one.workers()[0] !== leaky)
    expect(here.runs()).toHaveLength(2)
    await (await mill.enqueue('plain', 1)).result()
    expect(one.said('worker process is killed')).toEqual([])
  })

  test('P1 a crash loop backs off and is reported once; the rest of the pool works on', async () => {
    await using at = await place()
    const mill = await at.process(JOBS)
    const here = world()
    const one = here.start({ address: at.address, pools: { mixed: { processes: { min: 1, max: 2 } } } })
    await untilWorking(one, 1)
    here.put('crash')
    const cli = start(['workers', 'scale', 'mixed', '2', '--json', '--postgres', at.url])
    expect((await cli.done).json).toMatchObject({
      answers: [{ outcome: 'done', reason: 'pool mixed: 1 to 2 processes' }],
    })
    const loops = () => one.lines.filter(({ message }) => message.startsWith('crash loop:'))
    await until('the crash loop', () => loops().length > 0, { withinMs: 30_000 })
    const waits = () =>
      one.said('worker process is started again later: it lived too short').map(({ delayMs }) => delayMs)
    // Said right after the loop.
    await until('the last wait to be said', () => waits().length >= 4)
    expect(waits().slice(0, 4)).toEqual([1_000, 2_000, 4_000, 8_000])
    expect(loops()).toMatchObject([{ pool: 'mixed', shortLives: 5, code: 3 }])
    await (await mill.enqueue('plain', 1)).result()
    one.signal('SIGTERM')
    expect(await one.exit).toBe(0)
    expect(loops()).toHaveLength(1)
  })

  test('P1 a crash loop is told to a webhook once, and its end once, whatever happens in between', async () => {
    await using at = await place()
    const mill = await at.process(JOBS)
    const hook = await httpReceiver()
    const here = world()
    here.put('crash')
    const restart = { delay: '100ms', maxDelay: '500ms', stableAfter: '3s', crashLoopAfter: 3 } as const
    const one = here.start({
      address: at.address,
      pools: { mixed: { processes: 1, restart } },
      alerts: {
        every: '1s',
        rules: { 'crash-loop': { recover: '1s' } },
        sinks: { hook: { type: 'webhook', url: `${hook.url}/alerts`, secret: SECRET, allowPrivate: true } },
      },
    })
    const told = () => hook.received.filter(({ json }) => json['rule'] === 'crash-loop')
    await until('the alert', () => told().length > 0, { withinMs: 30_000 })
    const deaths = () => one.said('worker process ended unasked').length
    const before = deaths()
    await until('more of them to die', () => deaths() >= before + 3, { withinMs: 30_000 })
    expect(told()).toHaveLength(1)
    const { text, headers, json } = told()[0]!
    expect(json).toMatchObject({ kind: 'firing', severity: 'critical', name: expect.stringMatching(/\/mixed$/) })
    expect(verifyWebhook({ secret: SECRET, body: text, headers })).toBe('ok')

    here.take('crash')
    await until('its end', () => told().length > 1, { withinMs: 30_000 })
    expect(told().map(({ json: { kind, incident } }) => [kind, incident])).toEqual([
      ['firing', json['incident']],
      ['recovered', json['incident']],
    ])
    await (await mill.enqueue('plain', 1)).result()
    expect(one.said('crash loop is over')).toHaveLength(1)
    one.signal('SIGTERM')
    expect(await one.exit).toBe(0)
    expect(told()).toHaveLength(2)
  })

  test('P1 a rolling restart under load loses nothing and keeps at least 70 % of the throughput', async () => {
    await using at = await place()
    const mill = await at.process(JOBS)
    const here = world()
    const one = here.start({ address: at.address, pools: { mixed: { processes: 3, concurrency: 4 } } })
    await untilWorking(one, 3)
    // More than the pool can do, so that what is done is what it can do: 3 processes of 4 slots, 50 ms each.
    const chunk = Array.from({ length: 200 }, () => ['plain', 50] as const)
    let enqueued = 0
    let isEnough = false
    const feeding = (async () => {
      while (!isEnough) {
        await mill.enqueueMany(chunk)
        enqueued += chunk.length
        await until('the backlog to be small', () => isEnough || here.runs().length > enqueued - 100)
      }
    })()
    const countIn = (fromMs: number, untilMs: number): number =>
      here.runs().filter(({ atMs }) => atMs >= fromMs && atMs < untilMs).length
    const beganMs = Date.now()
    await until('a while before', () => Date.now() - beganMs > 1_500)
    const before = one.workers()
    const rolledMs = Date.now()
    one.signal('SIGHUP')
    await until('all to be new', () => one.said('all processes are restarted').length === 1, { withinMs: 30_000 })
    const endMs = Date.now()
    isEnough = true
    await feeding
    await until('the old ones to be gone', () => before.every((pid) => !isRunning(pid)))
    // The supervisor says so a moment after the system knows.
    await until('the supervisor to know', () => one.workers().every((pid) => !before.includes(pid)))
    const usual = countIn(beganMs + 250, rolledMs) / (rolledMs - beganMs - 250)
    const rolling = countIn(rolledMs, endMs) / (endMs - rolledMs)
    process.stdout.write(
      `before ${Math.round(usual * 1_000)}/s, during ${Math.round(rolling * 1_000)}/s for ${endMs - rolledMs} ms\n`,
    )
    expect(rolling / usual).toBeGreaterThanOrEqual(0.7)
    await untilEmpty(mill)
    const [{ counts } = { counts: undefined }] = await mill.jobs.counts('faults')
    expect(counts).toMatchObject({ completed: enqueued, failed: 0 })
    expect(here.runs()).toHaveLength(enqueued)
  })

  test('P1 a process that is silent is ended and replaced, and SIGINT of a terminal is for the supervisor alone', async () => {
    await using at = await place()
    const mill = await at.process(JOBS)
    const here = world()
    const pools = { mixed: { processes: 1, unresponsiveAfter: '2s' } } as const
    const one = here.start({ address: at.address, pools, supervise: { healthCheck: '500ms' } })
    await untilWorking(one, 1)
    const [pid] = one.workers()
    process.kill(pid!, 'SIGINT')
    process.kill(pid!, 'SIGTSTP')
    process.kill(pid!, 'SIGHUP')
    await (await mill.enqueue('plain', 1)).result()
    process.kill(pid!, 'SIGSTOP')
    await until('it to be replaced', () => one.workers().length === 1 && one.workers()[0] !== pid)
    expect(one.said('worker process gives no sign of life: it is ended')).toHaveLength(1)
    expect(isRunning(pid!)).toBe(false)
    await (await mill.enqueue('plain', 1)).result()
    const held = await mill.enqueue('held', 'never')
    await until('it to run', () => here.runs().some(({ job }) => job === held.id))
    one.signal('SIGINT')
    await until('the first signal to be heard', () => one.said('supervisor stops').length === 1)
    one.signal('SIGINT')
    expect(await one.exit).toBe(130)
    expect(one.workers()).toEqual([])
  })

  test('P1 commands from anywhere reach it, signed; without the secret they are refused', async () => {
    await using at = await place()
    const mill = await at.process(JOBS)
    const here = world()
    const pools = { mixed: { processes: { min: 1, max: 3 }, concurrency: 2 } }
    const one = here.start({ address: at.address, pools, supervise: { secret: SECRET } })
    await untilWorking(one, 1)
    const cli = async (line: string, secret = SECRET) => {
      const env = secret === '' ? {} : { MILLRACE_SECRET: secret }
      return start([...line.split(' '), '--json', '--postgres', at.url], { env }).done
    }
    const list = async () => {
      const { json } = await cli('workers ls')
      return json as {
        readonly supervisors: readonly SupervisorRecord[]
        readonly workers: readonly { readonly id: string }[]
      }
    }
    await until(
      'it to be listed',
      async () => (await list()).supervisors[0]?.pools[0]?.children[0]?.state === 'running',
    )
    const [supervisor] = (await list()).supervisors
    expect(supervisor).toMatchObject({
      pid: one.pid,
      state: 'running',
      pools: [{ name: 'mixed', wanted: 1, min: 1, max: 3 }],
    })

    for (const secret of ['', 'a secret of somebody else']) {
      const refused = await cli('workers scale mixed 3', secret)
      expect(refused.code).toBe(4)
      expect(refused.json).toMatchObject({ answers: [{ outcome: 'refused' }] })
    }
    expect(one.workers()).toHaveLength(1)
    expect((await cli('workers scale mixed 2')).code).toBe(0)
    await untilWorking(one, 2)

    expect((await cli('workers quiet --all')).code).toBe(0)
    const waiting = await mill.enqueue('plain', 1)
    await until('all to be quiet', async () => (await list()).supervisors[0]!.state === 'quiet')
    expect(await waiting.status()).toBe('queued')
    expect((await cli(`workers resume ${supervisor!.id}`)).code).toBe(0)
    await waiting.result()

    const child = (await list()).supervisors[0]!.pools[0]!.children[0]!
    const restarted = await cli(`workers restart ${child.id}`)
    expect(restarted.json).toMatchObject({
      answers: [{ target: child.id, outcome: 'done', reason: `${child.id}: 1 restarted` }],
    })
    await until('it to be another', () => !one.workers().includes(child.pid!) && one.workers().length === 2)

    // A worker without a supervisor is listed too, and hears the commands that workers know.
    const alone = await mill.work({ queues: ['faults'], heartbeat: 100 })
    const others = async () => (await list()).workers.map(({ id }) => id)
    await until('it alone to be listed', async () => (await others()).join() === alone.ids.join())
    expect((await cli(`workers stop ${alone.ids[0]} --yes`)).json).toMatchObject({ answers: [{ outcome: 'sent' }] })
    await until('it to stop', async () => (await list()).workers.length === 0)
    expect((await cli('workers restart nobody')).code).toBe(3)
    expect((await cli('workers quiet')).code).toBe(2)

    expect((await cli(`workers stop ${supervisor!.id} --yes`)).code).toBe(0)
    expect(await one.exit).toBe(0)
    expect((await list()).supervisors).toEqual([])
    expect(JSON.stringify(one.lines)).not.toContain(SECRET)
  })

  test('O3 the port of a supervisor is ready, tells the metrics of its processes, and says when it drains', async () => {
    await using at = await place()
    const mill = await at.process(JOBS)
    const here = world()
    const pools = { mixed: { processes: 2, concurrency: 5 } }
    const one = here.start({ address: at.address, pools, flags: ['--metrics-port', '0'] })
    await untilWorking(one, 2)
    const [{ url } = { url: undefined }] = one.said('health, metrics and scale signals are served')
    const get = (path: string): Promise<Response> => fetch(`${String(url)}${path}`)
    expect((await get('/live')).status).toBe(200)
    await until('it to be ready', async () => (await get('/ready')).status === 200)
    const handles = await mill.enqueueMany(Array.from({ length: 20 }, () => ['plain', 1] as const))
    for (const handle of handles) await handle.result()
    const completed = async (): Promise<number> =>
      Number(
        /^millrace_jobs_completed_total\{[^}]*kind="plain"[^}]*\} (\d+)$/m.exec(
          await (await get('/metrics')).text(),
        )?.[1],
      )
    await until('the processes to tell what they did', async () => (await completed()) === 20)
    expect(await (await get('/health')).json()).toMatchObject({ state: 'ok' })
    const held = await mill.enqueue('plain', 2_000)
    await until('a job to run', () => here.runs().length === 21)
    one.signal('SIGTERM')
    await until('it not to be ready', async () => (await get('/ready')).status === 503)
    await held.result()
    expect(await one.exit).toBe(0)
  })
})
