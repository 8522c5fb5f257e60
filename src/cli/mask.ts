// Passwords in connection URLs are never shown. Masking too much is a nuisance, masking too little a leak.

const PARAMETER = /([?&](?:password|pass|pwd|sslpassword|token|secret)=)[^&\s#"]*/gi
/** The password is taken to reach up to the last @ before the next space. */
const IN_TEXT = /\b([a-z][a-z0-9+.-]*:\/\/[^\s:/?#@"]*):\S*@/gi
/** Not beyond the string it stands in: what follows would be swallowed, and the rest is no JSON any more. */
const IN_JSON = /\b([a-z][a-z0-9+.-]*:\/\/[^\s:/?#@"]*):(?:\\.|[^\s"\\])*@/gi

export function maskUrls(text: string): string {
  return text.replaceAll(IN_TEXT, '$1:***@').replaceAll(PARAMETER, '$1***')
}

/** For text with JSON in it. */
export function maskUrlsInJson(text: string): string {
  return text.replaceAll(IN_JSON, '$1:***@').replaceAll(PARAMETER, '$1***')
}
