// The suites that every store in a server passes, on the hybrid.
import { describe } from 'vitest'
import { cancelling } from '../../stores/cancel.ts'
import { groups } from '../../stores/groups.ts'
import { kinds } from '../../stores/kinds.ts'
import { seeing } from '../../stores/metrics.ts'
import { once } from '../../stores/once.ts'
import { poison } from '../../stores/poison.ts'
import { results } from '../../stores/results.ts'
import { retrying } from '../../stores/retry.ts'
import { useHybrid } from './support.ts'

const place = useHybrid()
// A run shows as running when it is marked, a quarter of a second after its start, or when it is confirmed.
const confirming = useHybrid({ claims: 'confirmed' })

describe('hybrid: cancel', () => cancelling(place))
describe('hybrid: groups', () => groups(place))
describe('hybrid: kinds', () => kinds(place))
describe('hybrid: metrics', () => seeing(place))
describe('hybrid: once', () => once(confirming))
describe('hybrid: poison', () => poison(place))
describe('hybrid: results', () => results(place))
describe('hybrid: retry', () => retrying(place))
