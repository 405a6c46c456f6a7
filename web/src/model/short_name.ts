// A C++ or Rust function's name for a narrow frame: without parameters, template arguments, return
// type and trait; then without its outer scopes; cut only where even the innermost is too long.
// Pure.
// SPDX-License-Identifier: Apache-2.0

const CLOSE: Readonly<Record<string, string>> = { '(': ')', '<': '>' };
const ANONYMOUS = '(anonymous namespace)::';

/** The position behind the bracket that closes the one at `from`; -1: none does. */
function behind(name: string, from: number): number {
  const open = name[from] ?? '';
  const close = CLOSE[open];
  let depth = 0;
  for (let at = from; at < name.length; at += 1) {
    if (name[at] === open) depth += 1;
    else if (name[at] === close && name[at - 1] !== '-') depth -= 1;
    if (depth === 0) return at + 1;
  }
  return -1;
}

/** Of what Rust has in front of a method, "<a::Type as b::Trait>": the type. */
function qualifiedType(qualified: string): string {
  for (let at = 1; at < qualified.length - 1; at += 1) {
    if (qualified[at] === '<' || qualified[at] === '(') at = behind(qualified, at) - 1;
    else if (qualified.startsWith(' as ', at)) return qualified.slice(1, at);
    if (at < 0) break;
  }
  return qualified.slice(1, -1);
}

/** Without parameters, template arguments, return type and suffixes; scopes stay. */
export function bareName(name: string): string {
  if (name.startsWith('[')) return name;
  const start = name.startsWith('<') ? Math.max(behind(name, 0), 0) : 0;
  let out = start === 0 ? '' : bareName(qualifiedType(name.slice(0, start)));
  for (let at = start; at < name.length; ) {
    if (name.startsWith(ANONYMOUS, at)) at += ANONYMOUS.length;
    else if (/(^|[^\w])operator$/.test(out)) {
      const sign = /^(\(\)|\[\]|[-+*/%^&|~!=<>,]+| [\w:*&]+)/.exec(name.slice(at))?.[0] ?? ' ';
      out += sign.replace(' ', '\u00a0');
      at += sign.length;
    } else if (name[at] === '(' || name[at] === '<') {
      const next = behind(name, at);
      if (next < 0) return `${innermost(out, name)}${name[at]}…`; // the name itself was cut
      at = next;
    } else if (name[at] === ' ' && /^ (const|volatile|&|\[clone|\[abi)/.test(name.slice(at))) {
      if (!name.slice(at).includes('::')) break;
      at += /^ (const|volatile|&+|\[[^\]]*\])?/.exec(name.slice(at))?.[0].length ?? 1;
    } else {
      out += name[at];
      at += 1;
    }
  }
  return innermost(out, name);
}

/** Without a return type. */
function innermost(text: string, name: string): string {
  return text.trim().split(' ').pop()?.replace('\u00a0', ' ') || name;
}

/** As much of the name as `letters` hold. */
export function shortName(name: string, letters: number): string {
  if (name.length <= letters) return name;
  const bare = bareName(name);
  if (bare.length <= letters) return bare;
  const scopes = bare.split('::');
  let kept = scopes.pop() ?? bare;
  for (let scope = scopes.pop(); scope !== undefined; scope = scopes.pop()) {
    if (scope.length + 2 + kept.length > letters) break;
    kept = `${scope}::${kept}`;
  }
  return kept.length <= letters ? kept : `${kept.slice(0, Math.max(letters - 1, 0))}…`;
}
