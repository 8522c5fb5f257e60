// Our command beside that of the library: the same in all but where its functions live.
import { Command } from 'ioredis'
import { expect, test } from 'vitest'
import { commandClass } from '../../src/backends/redis/ioredis-command.ts'
import type { CommandClass, CommandOptions } from '../../src/backends/redis/ioredis-command.ts'

/** What is compared, and not said by its types. */
type Inside = Command & { resolve(reply: unknown): void; toWritable(): unknown; getSlot(): number | null }

const THEIRS = Command as unknown as CommandClass
const OURS = commandClass(Command)
const ARGS = ['sha', '2', '{a}k', Buffer.from('{a}x'), 3, 9007199254740991, Buffer.from([0, 255]), 'grüße']
const ENCODINGS: readonly CommandOptions['replyEncoding'][] = ['utf8', null]

function both(replyEncoding: CommandOptions['replyEncoding']): readonly Inside[] {
  return [THEIRS, OURS].map((Class) => new Class('evalsha', ARGS, { replyEncoding }) as Inside)
}

test('it is another class, made once', () => {
  expect(OURS).not.toBe(THEIRS)
  expect(commandClass(Command)).toBe(OURS)
})

test.each(ENCODINGS)('it is written alike and answered alike, with replies as %s', async (encoding) => {
  const [theirs, ours] = both(encoding)
  expect(Object.keys(ours!).toSorted()).toEqual(Object.keys(theirs!).toSorted())
  expect([ours!.toWritable(), ours!.getSlot()]).toEqual([theirs!.toWritable(), theirs!.getSlot()])
  const reply = (): unknown => [Buffer.from('x'), [1, null, Buffer.from([200, 10]), []]]
  for (const command of [theirs!, ours!]) command.resolve(reply())
  expect(await ours!.promise).toEqual(await theirs!.promise)
})

test.each(ENCODINGS)(
  'it fails alike, and an answer after that changes nothing, with replies as %s',
  async (encoding) => {
    const error = new Error('refused')
    for (const command of both(encoding)) {
      command.reject(error)
      command.resolve(Buffer.from('late'))
      await expect(command.promise).rejects.toBe(error)
    }
  },
)

test('where the inside of the library is another one, its own class is used', () => {
  class Renamed extends (Command as unknown as new (name: string) => object) {
    declare _clearTimers: undefined
  }
  Object.defineProperty(Renamed.prototype, '_clearTimers', { value: undefined })
  const renamed = Renamed as unknown as typeof Command
  expect(commandClass(renamed)).toBe(renamed)
  class Grown extends (Command as unknown as new (...args: readonly unknown[]) => object) {
    declare traceId: number
    initPromise(): void {
      // The next version keeps something more for each command.
      this.traceId = 1
      Object.getPrototypeOf(Grown.prototype).initPromise.call(this)
    }
  }
  const grown = Grown as unknown as typeof Command
  expect(commandClass(grown)).toBe(grown)
})
