// Whoever is compared is told how it was set up and why.
import { expect, test } from 'vitest'
import { PEER_NOTES } from '../../chaos/peer-notes.ts'
import { OURS, SYSTEM_NAMES, systemOf } from '../../chaos/systems/catalogue.ts'

const PEERS = SYSTEM_NAMES.filter((name) => name !== OURS)

test('every peer has a paragraph with its sources, and no paragraph is about anybody else', () => {
  expect(Object.keys(PEER_NOTES).toSorted()).toEqual(PEERS.toSorted())
  const poor = Object.entries(PEER_NOTES).filter(([, { text, sources }]) => text.length < 200 || sources.length === 0)
  expect(poor).toEqual([])
})

test.each(SYSTEM_NAMES)('%s is in the catalogue under its own name and states its settings', async (name) => {
  const system = await systemOf(name)
  expect(system.name).toBe(name)
  expect(system.backends.length).toBeGreaterThan(0)
  expect(system.settings).not.toBe('')
})
