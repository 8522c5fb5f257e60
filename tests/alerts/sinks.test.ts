// Every sink against a real receiver: what arrives when an alert fires and when it is over, which answers are tried again,
// where nothing is ever sent, and that no secret leaves its sink.
import { describe, expect, test } from 'vitest'
import { checkAlerts } from '../../src/alerts/options.ts'
import { createPost } from '../../src/alerts/post.ts'
import type { AnySinkOptions, SinkParts } from '../../src/alerts/sink-options.ts'
import { isPublicAddress } from '../../src/alerts/sinks/address.ts'
import { signWebhook } from '../../src/alerts/sinks/signature.ts'
import type { SentNotice } from '../../src/alerts/sinks/sink.ts'
import type { Notice, NoticeKind } from '../../src/core/alerting.ts'
import { verifyWebhook } from '../../src/index.ts'
import { jsonLogger } from '../../src/runtime/logger.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { httpReceiver, smtpReceiver } from './receivers.ts'

const START_MS = Date.UTC(2030, 0, 1)

function notice(kind: NoticeKind, no = 1): Notice {
  return {
    kind,
    key: 'depth:mail',
    incident: `depth:mail@${START_MS}`,
    no,
    quiet: false,
    rule: 'depth',
    connection: 'default',
    name: 'mail',
    queue: 'mail',
    severity: 'critical',
    text: 'queue mail has 12000 jobs ready <!channel> & more',
    value: 12_000,
    limit: 10_000,
    startedAtMs: START_MS,
    atMs: START_MS + 60_000 * (no - 1),
    note: null,
  }
}

function sinkOf(options: AnySinkOptions, parts: Omit<SinkParts, 'runtime'> = {}) {
  const lines: string[] = []
  const runtime = createRuntime({ logger: jsonLogger('debug', (line) => void lines.push(line)) })
  const post = createPost(checkAlerts({ system: 'shop', sinks: { it: options } }), { runtime, ...parts })
  return {
    lines,
    send: (one: Notice) => post.try('it', one),
    sendTwice: (one: Notice) => post.send('it', one),
  }
}

/** Fires and recovers. */
async function tell(options: AnySinkOptions): Promise<readonly string[]> {
  const { send } = sinkOf(options)
  return [await send(notice('firing')), await send(notice('recovered', 2))]
}

const SECRET = 'a-secret-of-the-webhook'
const TOKEN = 'T000/B000/XXXXSECRETXXXX'

describe('O2 a webhook', () => {
  test('is told in JSON, signed, that an alert fires and is over', async () => {
    const to = await httpReceiver()
    const url = `${to.url}/hooks/${TOKEN}`
    const headers = { authorization: 'Bearer tttt-oooo' }
    expect(await tell({ type: 'webhook', url, secret: SECRET, headers, allowPrivate: true })).toEqual([
      '127.0.0.1 answered 200',
      '127.0.0.1 answered 200',
    ])
    const [firing, over] = to.received
    expect(firing?.json).toMatchObject({
      version: 1,
      system: 'shop',
      kind: 'firing',
      severity: 'critical',
      alert: 'depth:mail',
      dedupeKey: `depth:mail@${START_MS}#1`,
      title: '[critical] depth mail: firing',
      value: 12_000,
      startedAt: '2030-01-01T00:00:00.000Z',
    })
    expect(over?.json).toMatchObject({ kind: 'recovered', incident: firing?.json['incident'] })
    expect(over?.json['text']).toMatch(/^over after 1m; it was: queue mail/)
    expect(firing?.headers).toMatchObject({
      authorization: 'Bearer tttt-oooo',
      'millrace-dedupe-key': `depth:mail@${START_MS}#1`,
    })
  })

  test('has a signature that its receiver can verify, once', async () => {
    const to = await httpReceiver()
    await tell({ type: 'webhook', url: to.url, secret: SECRET, allowPrivate: true })
    const { headers, text: body } = to.received[0]!
    const check = (part: Partial<Parameters<typeof verifyWebhook>[0]>) =>
      verifyWebhook({ body, headers, secret: SECRET, ...part })
    const atMs = Number(headers['millrace-timestamp']) * 1_000
    expect(check({})).toBe('ok')
    expect(check({ secret: ['the next secret of it', SECRET] })).toBe('ok')
    expect(check({ body: Buffer.from(body) })).toBe('ok')
    expect(check({ body: `${body} ` })).toBe('forged')
    expect(check({ secret: 'another secret, as long' })).toBe('forged')
    expect(check({ nowMs: atMs + 5 * 60_000 + 1_000 })).toBe('expired')
    expect(check({ nowMs: atMs - 5 * 60_000 - 1_000 })).toBe('expired')
    expect(check({ headers: {} })).toBe('unsigned')
    // The time is signed too: a new one does not make an old request new.
    expect(check({ headers: { ...headers, 'millrace-timestamp': String(atMs / 1_000 + 60) } })).toBe('forged')
    expect(check({ headers: { ...headers, 'millrace-signature': signWebhook('x', atMs / 1_000, body) } })).toBe(
      'forged',
    )
  })

  test.each([
    [500, {}, 'NOTICE_NOT_DELIVERED', undefined],
    [503, { 'retry-after': '7' }, 'NOTICE_NOT_DELIVERED', 7_000],
    [429, { 'retry-after': '120' }, 'NOTICE_NOT_DELIVERED', 120_000],
    [408, {}, 'NOTICE_NOT_DELIVERED', undefined],
    [400, {}, 'NOTICE_REFUSED', undefined],
    [404, {}, 'NOTICE_REFUSED', undefined],
    [302, { location: 'http://127.0.0.1:1/elsewhere' }, 'NOTICE_REFUSED', undefined],
  ])('that answers %i is judged by it', async (status, headers, code, retryAfterMs) => {
    const to = await httpReceiver((response) => void response.writeHead(status, headers).end(`no, ${TOKEN}`))
    const url = `${to.url}/hooks/${TOKEN}`
    const error = await sinkOf({ type: 'webhook', url, secret: SECRET, allowPrivate: true })
      .send(notice('firing'))
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code, details: { status, ...(retryAfterMs !== undefined && { retryAfterMs }) } })
    expect(String(error)).toContain(`127.0.0.1 answered ${status}`)
    expect(shownOf(error)).not.toContain('XXXXSECRETXXXX')
    expect(to.received).toHaveLength(1)
  })

  test('that does not answer in time, or endlessly, is not waited for', async () => {
    const silent = await httpReceiver(() => undefined)
    const slow = sinkOf({ type: 'webhook', url: silent.url, allowPrivate: true, timeout: '200ms' })
    await expect(slow.send(notice('firing'))).rejects.toMatchObject({ code: 'NOTICE_NOT_DELIVERED', retryable: true })
    const endless = await httpReceiver((response) => {
      response.writeHead(200)
      const more = (): void => void (response.destroyed || response.write('x'.repeat(4_096), () => setImmediate(more)))
      more()
    })
    const much = sinkOf({ type: 'webhook', url: endless.url, allowPrivate: true, timeout: '10s' })
    await expect(much.send(notice('firing'))).resolves.toBe('127.0.0.1 answered 200')
  })

  test('that is not there is tried again, and a second time at once', async () => {
    const gone = sinkOf({ type: 'webhook', url: 'http://127.0.0.1:1/', allowPrivate: true })
    await expect(gone.send(notice('firing'))).rejects.toMatchObject({ code: 'NOTICE_NOT_DELIVERED' })
    const to = await httpReceiver((response, no) => void response.writeHead(no === 1 ? 502 : 200).end())
    const flaky = sinkOf({ type: 'webhook', url: to.url, allowPrivate: true })
    await expect(flaky.sendTwice(notice('firing'))).resolves.toBe('127.0.0.1 answered 200')
    expect(to.received).toHaveLength(2)
  })
})

describe('O2 the guard of addresses', () => {
  test.each([
    '127.0.0.1',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '::1',
    '::',
    'fe80::1',
    'fc00::1',
    'fd12::1',
    'ff02::1',
    '::ffff:127.0.0.1',
    '::ffff:a9fe:a9fe',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '2001:db8::1',
    'fe80::1%eth0',
    'localhost',
    '',
  ])('refuses %s', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  test.each(['1.1.1.1', '93.184.216.34', '2606:4700:4700::1111', '2a00:1450:4001:80b::200e'])('lets %s pass', (one) => {
    expect(isPublicAddress(one)).toBe(true)
  })

  test.each([
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://169.254.169.254/latest/meta-data',
  ])('sends nothing to %s', async (url) => {
    const error = await sinkOf({ type: 'webhook', url })
      .send(notice('firing'))
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'NOTICE_REFUSED' })
    expect(String(error)).toContain('set allowPrivate')
  })

  test('looks at every address of a name, and connects to one it has looked at', async () => {
    const to = await httpReceiver()
    const asked: string[] = []
    const parts = (...answers: readonly string[]) => ({
      resolve(hostname: string) {
        asked.push(hostname)
        return Promise.resolve(answers.map((address) => ({ address, family: 4 as const })))
      },
    })
    const url = `https://hooks.example:${to.port}/x`
    const mixed = sinkOf({ type: 'webhook', url }, parts('93.184.216.34', '127.0.0.1'))
    await expect(mixed.send(notice('firing'))).rejects.toMatchObject({ code: 'NOTICE_REFUSED' })
    expect(to.received).toEqual([])
    // A name that nobody but this resolver knows arrives: it was asked once, and its answer is where the request goes.
    const pinned = sinkOf(
      { type: 'webhook', url: url.replace('https', 'http'), allowPrivate: true },
      parts('127.0.0.1'),
    )
    await pinned.send(notice('firing'))
    expect(to.received[0]?.headers.host).toBe(`hooks.example:${to.port}`)
    expect(asked).toEqual(['hooks.example', 'hooks.example'])
  })

  test('that finds no address says so and tries again', async () => {
    const resolve = () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' }))
    const lost = sinkOf({ type: 'slack', url: 'https://hooks.example/services/T0/B0/secret' }, { resolve })
    await expect(lost.send(notice('firing'))).rejects.toMatchObject({
      code: 'NOTICE_NOT_DELIVERED',
      message: 'hooks.example cannot be resolved: ENOTFOUND',
    })
  })
})

test('O2 Slack is told that an alert fires and is over, and nobody is mentioned by a text', async () => {
  const to = await httpReceiver()
  const replies = await tell({ type: 'slack', url: `${to.url}/services/${TOKEN}`, allowPrivate: true })
  expect(replies).toEqual(['Slack answered ok', 'Slack answered ok'])
  const [firing, over] = to.received
  expect(firing?.path).toBe(`/services/${TOKEN}`)
  const blocks = firing?.json['blocks'] as readonly {
    readonly type: string
    readonly text?: { readonly text: string }
  }[]
  expect(blocks.map(({ type }) => type)).toEqual(['header', 'section', 'context'])
  expect(blocks[0]?.text?.text).toBe(':rotating_light: [critical] depth mail: firing')
  expect(firing?.text).toContain('&lt;!channel&gt; &amp; more')
  expect(firing?.text).not.toContain('<!channel>')
  expect(over?.text).toContain(':white_check_mark:')
})

test('O2 PagerDuty is triggered, acknowledged and resolved by one key', async () => {
  const to = await httpReceiver((response) => void response.writeHead(202).end('{"status":"success"}'))
  const routingKey = '0123456789abcdef0123456789abcdef'
  const { send } = sinkOf({ type: 'pagerduty', routingKey, url: `${to.url}/v2/enqueue`, allowPrivate: true })
  for (const [index, kind] of (['firing', 'reminder', 'acknowledged', 'recovered'] as const).entries()) {
    expect(await send(notice(kind, index + 1))).toBe('PagerDuty answered {"status":"success"}')
  }
  expect(to.received.map(({ json }) => [json['event_action'], json['dedup_key'], json['routing_key']])).toEqual([
    ['trigger', 'shop:depth:mail', routingKey],
    ['trigger', 'shop:depth:mail', routingKey],
    ['acknowledge', 'shop:depth:mail', routingKey],
    ['resolve', 'shop:depth:mail', routingKey],
  ])
  expect(to.received[0]?.json['payload']).toMatchObject({
    severity: 'critical',
    source: 'shop',
    class: 'depth',
    component: 'mail',
  })
})

describe('O2 e-mail', () => {
  const from = 'Millrace <alerts@example.com>'
  const to = ['ops@example.com', 'ada@example.com']

  test('arrives when an alert fires and when it is over, as one conversation', async () => {
    const server = await smtpReceiver()
    const smtp = `smtp://ops:pass%20word@127.0.0.1:${server.port}`
    const replies = await tell({ type: 'email', smtp, from, to })
    expect(replies[0]).toMatch(/^the mail server answered 250/)
    expect(server.logins[0]).toEqual({ user: 'ops', password: 'pass word' })
    const [firing, over] = server.letters
    expect(firing).toMatchObject({ from: 'alerts@example.com', to })
    expect(firing?.text).toContain('Subject: shop: [critical] depth mail: firing')
    const id = /^Message-ID: (\S+)/im.exec(firing?.text ?? '')?.[1]
    expect(id).toMatch(/^<[0-9a-f]{32}@millrace>$/)
    expect(over?.text).toContain(`In-Reply-To: ${id}`)
  })

  test.each([
    [451, 'NOTICE_NOT_DELIVERED'],
    [554, 'NOTICE_REFUSED'],
  ])('that the server answers with %i is judged by it', async (refuse, code) => {
    const server = await smtpReceiver({ refuse })
    const { send } = sinkOf({ type: 'email', smtp: { host: '127.0.0.1', port: server.port }, from, to })
    await expect(send(notice('firing'))).rejects.toMatchObject({ code, details: { status: refuse } })
  })

  test('with a wrong password is refused without showing it', async () => {
    const server = await smtpReceiver()
    const smtp = `smtp://ops:wrong-password@127.0.0.1:${server.port}`
    const error = await sinkOf({ type: 'email', smtp, from, to })
      .send(notice('firing'))
      .catch((e: unknown) => e)
    expect(error).toMatchObject({ code: 'NOTICE_REFUSED' })
    expect(shownOf(error)).not.toContain('wrong-password')
  })

  test('without its package says what to install', async () => {
    const loadMailer = () => Promise.reject(new Error('Cannot find package'))
    const sink = sinkOf({ type: 'email', smtp: 'smtp://127.0.0.1', from, to }, { loadMailer })
    await expect(sink.send(notice('firing'))).rejects.toMatchObject({
      code: 'MAILER_MISSING',
      message: expect.stringContaining('npm install nodemailer'),
    })
  })
})

test('O2 the log has a line when an alert fires and when it is over', async () => {
  const { send, lines } = sinkOf({ type: 'log' })
  await send(notice('firing'))
  await send(notice('recovered', 2))
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { level: 'error', alert: 'depth:mail', kind: 'firing', system: 'shop' },
    { level: 'info', alert: 'depth:mail', kind: 'recovered' },
  ])
})

test('O2 a function is given the notice, and its error or its silence is one', async () => {
  const seen: SentNotice[] = []
  const { send } = sinkOf({ type: 'custom', send: (one) => void seen.push(one) })
  await send(notice('firing'))
  await send(notice('recovered', 2))
  expect(seen).toMatchObject([
    { kind: 'firing', system: 'shop', dedupeKey: `depth:mail@${START_MS}#1` },
    { kind: 'recovered' },
  ])
  const throws = sinkOf({
    type: 'custom',
    send: () => {
      throw new Error('no')
    },
  })
  await expect(throws.send(notice('firing'))).rejects.toThrow('no')
  const hangs = sinkOf({ type: 'custom', timeout: '100ms', send: () => new Promise(() => undefined) })
  await expect(hangs.send(notice('firing'))).rejects.toMatchObject({ code: 'STORE_TIMEOUT' })
})

describe('O2 the configuration', () => {
  const ok: AnySinkOptions = { type: 'webhook', url: 'https://example.com/x' }

  test.each([
    [{ sinkz: {} }, 'alerts has no option "sinkz"'],
    [{ every: '1ms' }, 'alerts.every is "1ms"'],
    [{ sinks: { a: { type: 'fax' } } }, 'alerts.sinks.a.type is "fax"'],
    [{ sinks: { a: null } }, 'alerts.sinks.a.type is undefined'],
    [{ sinks: { a: { type: 'webhook' } } }, 'alerts.sinks.a.url'],
    [{ sinks: { a: { type: 'webhook', url: 'http://example.com' } } }, 'an https:// URL'],
    [{ sinks: { a: { type: 'webhook', url: 'ftp://example.com' } } }, "a URL such as 'https://…'"],
    [{ sinks: { a: { ...ok, secret: 'short' } } }, 'alerts.sinks.a.secret is "5 characters"'],
    [{ sinks: { a: { ...ok, timeout: '1d' } } }, 'alerts.sinks.a.timeout'],
    [{ sinks: { a: { ...ok, retries: 3 } } }, 'alerts.sinks.a has no option "retries"'],
    [{ sinks: { a: { type: 'pagerduty' } } }, 'alerts.sinks.a.routingKey'],
    [{ sinks: { a: { type: 'email', smtp: 'x', from: 'a@b', to: 'c@d' } } }, 'alerts.sinks.a.smtp'],
    [{ sinks: { a: { type: 'email', smtp: 'smtp://h', from: 'a@b', to: [] } } }, 'alerts.sinks.a.to'],
    [{ sinks: { a: { type: 'email', smtp: 'smtp://h', from: 'a@b\nBcc: x@y', to: 'c@d' } } }, 'alerts.sinks.a.from'],
    [{ sinks: { a: { type: 'custom' } } }, 'alerts.sinks.a.send'],
    [{ sinks: { 'a b': ok } }, 'cannot be the name of a sink'],
    [
      { sinks: { a: ok }, routes: { critical: ['b'] } },
      'alerts.routes.critical is "b", but must be one of the sinks a',
    ],
    [{ routes: { fatal: [] } }, 'alerts.routes has no option "fatal"'],
    [{ silences: [{ match: 'depht', reason: 'x' }] }, 'alerts.silences[0].match is "depht"'],
    [{ silences: [{ match: 'depth' }] }, 'alerts.silences[0].reason'],
    [{ silences: [{ match: 'depth', reason: 'x', until: 'soon' }] }, 'alerts.silences[0].until'],
    [{ silences: [{ reason: 'x' }] }, 'alerts.silences[0]'],
  ])('%j is told to be wrong', (options, message) => {
    // Mistakes that the types would not let through.
    expect(() => checkAlerts(options as never)).toThrow(message)
  })

  test('never shows a secret that is wrong', () => {
    const wrong = [
      { type: 'webhook', url: 'https://user:hunter2hunter2@example.com/' },
      { type: 'webhook', url: 'not a url with hunter2hunter2' },
      { type: 'pagerduty', routingKey: 'hunter2' },
      { type: 'webhook', url: 'https://example.com', secret: 'hunter2' },
      { type: 'email', smtp: 'imap://ops:hunter2@mail', from: 'a@b', to: 'c@d' },
    ]
    for (const options of wrong) {
      const message = messageOf(() => checkAlerts({ sinks: { a: options as never } }))
      expect(message).toContain('alerts.sinks.a')
      expect(message).not.toContain('hunter2')
    }
  })

  test('tells whom each severity goes to', () => {
    expect(checkAlerts().routes).toEqual({ info: ['log'], warning: ['log'], critical: ['log'] })
    const sinks = { a: ok, b: ok }
    expect(checkAlerts({ sinks, routes: { critical: ['b'], info: [] } }).routes).toEqual({
      info: [],
      warning: ['a', 'b'],
      critical: ['b'],
    })
  })
})

function messageOf(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    return shownOf(error)
  }
  return ''
}

/** All of an error that a log might have. */
function shownOf(error: unknown): string {
  const { message, stack, cause, details } = error as Error & { readonly details?: unknown }
  return `${message} ${stack} ${JSON.stringify(details)} ${cause instanceof Error ? cause.message : ''}`
}
