// For the checks of the peers alone: `npx vitest run --config tests/chaos/peers.config.ts`. They are no part of
// `npm test`, which does without the 220 MB of bench/peers.
import { defineConfig } from 'vitest/config'
import base from '../../vitest.config.ts'

const peers = { extends: true as const, test: { name: 'peers', include: ['tests/chaos/peers.check.ts'] } }
export default defineConfig({ ...base, test: { ...base.test, projects: [peers] } })
