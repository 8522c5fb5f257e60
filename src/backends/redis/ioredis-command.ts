// One command of ioredis, as the library sends it for `call`, but for one thing: there a function literal is assigned to
// a property of each command, and V8 puts such a function into the old generation, where it holds the command, its
// arguments and its answer until the next full collection. At 500 jobs a second that made the short collections three
// times as long, for every job that waits meanwhile. (On a Cluster the library does it once more, which stays.)
import type { Command as LibraryCommand } from 'ioredis'

export interface CommandOptions {
  /** Null: the reply stays bytes. */
  readonly replyEncoding: 'utf8' | null
}

export type CommandClass = new (name: string, args: readonly unknown[], options: CommandOptions) => LibraryCommand

/** What the library's own constructor calls to make the promise of a command. */
interface Inside {
  initPromise(): void
  stringifyArguments(): void
  _convertValue(resolve: (value: unknown) => void): (value: unknown) => unknown
  _clearTimers(): void
  transformed: boolean
  isResolved: boolean
  isSettled: boolean
  promise: Promise<unknown>
  resolve: (value: unknown) => unknown
  reject: (error: Error) => void
}

type InsideClass = new (name: string, args: readonly unknown[], options: CommandOptions) => Inside

const made = new WeakMap<typeof LibraryCommand, CommandClass>()

/** The library's own class where its inside is not what this was written for. */
export function commandClass(library: typeof LibraryCommand): CommandClass {
  const known = made.get(library)
  if (known !== undefined) return known
  const own = library as unknown as CommandClass
  const light = lightClass(library as unknown as InsideClass)
  const chosen = light !== undefined && isAlike(own, light) ? light : own
  made.set(library, chosen)
  return chosen
}

/** What the library gives a command, ours has as well. */
function isAlike(own: CommandClass, light: CommandClass): boolean {
  const [theirs, ours] = [own, light].map((Class) => new Class('ping', [], { replyEncoding: 'utf8' }))
  return Object.keys(theirs!).toSorted().join() === Object.keys(ours!).toSorted().join()
}

/** Undefined: a method that is called below is not there. */
function lightClass(library: InsideClass): CommandClass | undefined {
  const inside = library.prototype as Partial<Inside>
  const isKnown = inside.initPromise && inside.stringifyArguments && inside._convertValue && inside._clearTimers
  if (!isKnown) return undefined

  class LightCommand extends library {
    override initPromise(): void {
      this.transformed = true
      this.isResolved = this.isSettled = false
      this.promise = new Promise((resolve, reject) => {
        this.stringifyArguments()
        const fail = (error: Error): void => {
          this._clearTimers()
          this.isSettled = true
          reject(error)
        }
        this.resolve = this._convertValue(resolve)
        this.reject = fail
      })
    }
  }
  return LightCommand as unknown as CommandClass
}
