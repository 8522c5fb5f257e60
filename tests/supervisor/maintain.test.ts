// Maintenance without a worker: what the supervisor runs so that its processes need not.
import { expect, onTestFinished, test } from 'vitest'
import { createMillrace, defineJob, memory } from '../../src/index.ts'

test('P1 one process maintains and another works: delayed jobs run, and it goes on when workers come and go', async () => {
  const backend = memory()
  const later = defineJob({ name: 'later', run: () => 'done' })
  const working = await createMillrace({ jobs: [later], backend, maintenance: false })
  const maintaining = await createMillrace({ jobs: [later], backend })
  onTestFinished(async () => {
    await working.stop({ deadline: 0 })
    await maintaining.stop({ deadline: 0 })
  })
  await working.work()
  await maintaining.maintain()
  expect(await (await working.enqueue(later, undefined, { delay: 20 })).result()).toBe('done')
  const own = await maintaining.work()
  await own.stop()
  expect(await (await working.enqueue(later, undefined, { delay: 20 })).result()).toBe('done')
  await maintaining.stop()
  await expect(maintaining.maintain()).rejects.toMatchObject({ code: 'STOPPED' })
})
