// What must never reach a log or a message.

/** A url that somebody put into a message, without its password. */
export function withoutPasswords(text: string): string {
  return text.replace(/(\w+:\/\/[^:\s/@]*):\S*@/g, '$1:***@').replace(/\b(password|passwd|pwd)=[^\s&]+/gi, '$1=***')
}
