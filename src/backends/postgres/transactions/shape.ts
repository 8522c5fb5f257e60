// Looks at objects of unknown origin. Reads and never uses `in`: the proxies of Prisma throw on it.

type Methods<Name extends string> = Readonly<Record<Name, (...args: readonly unknown[]) => unknown>>

export function hasMethods<Name extends string>(value: unknown, ...names: readonly Name[]): value is Methods<Name> {
  return names.every((name) => typeof property(value, name) === 'function')
}

export function property(value: unknown, name: PropertyKey): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  return Reflect.get(value, name)
}
