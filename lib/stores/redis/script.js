// The one script that the server runs: each call drops the tickets whose time is over, does its step, and grants whom it lets in. What
// a step costs does not grow with the line.
//
// Keys, all in one hash slot: a sorted set of tickets by their place in line, a hash of what is known of each, a hash of the name
// (fence, next place, mark, the time of the last step, and until when no ticket's time is over). A ticket is granted if its fence is
// set. Its deadline is the server's time of the last word of its client, and one lease more: a grant does not touch it. Time is that of
// the server only.
//
// A ticket that is granted by another's call is told on the channel of its session (fence, mark, ticket), which may lose it: the
// renewals of those who wait say it again.

const { createHash } = require('node:crypto');

/** Verbs. */
exports.ENQUEUE = 'enqueue';
exports.RENEW = 'renew';
exports.RELEASE = 'release';
exports.TRY = 'try';
/** As RENEW, and takes the mark off. */
exports.CLEAR = 'clear';

const SCRIPT = `
local line, tickets, name = KEYS[1], KEYS[2], KEYS[3]
local verb, id, lease, shared, session, mark = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local micros = string.format('%d%06d', clock[1], clock[2])

local function read(ticket)
  local text = redis.call('HGET', tickets, ticket)
  if not text then return nil end
  local deadline, fence, kind, channel = string.match(text, '^(%d+) (%d+) (%d) (.*)$')
  return { deadline = tonumber(deadline), fence = fence, shared = kind == '1', channel = channel }
end
local function write(ticket, it)
  redis.call('HSET', tickets, ticket, string.format('%d %s %d %s', it.deadline, it.fence, it.shared and 1 or 0, it.channel))
end
local function drop(ticket)
  redis.call('ZREM', line, ticket)
  redis.call('HDEL', tickets, ticket)
end

-- Larger than all before, and not below the clock: numbers of 16 digits, as text, since Lua's own are exact to 2^53 only.
local function next_fence()
  local last = redis.call('HGET', name, 'fence') or '0'
  local fence = micros
  if #last > #fence or (#last == #fence and last >= fence) then
    redis.call('HSET', name, 'fence', last)
    redis.call('HINCRBY', name, 'fence', 1)
    fence = redis.call('HGET', name, 'fence')
  else
    redis.call('HSET', name, 'fence', fence)
  end
  return fence
end

-- The first, and behind a shared one the shared ones next to it. At the end of each step those that are granted are the first of the
-- line, so that nobody behind one that is granted already can be let in: what this costs is what it grants.
local function grant(rank)
  local before = rank > 0 and read(redis.call('ZRANGE', line, rank - 1, rank - 1)[1])
  if before and (before.fence == '0' or not before.shared) then return end
  while true do
    local ticket = redis.call('ZRANGE', line, rank, rank)[1]
    local it = ticket and read(ticket)
    if not it or it.fence ~= '0' or (before and not it.shared) then return end
    it.fence = next_fence()
    write(ticket, it)
    if ticket ~= id then
      redis.call('PUBLISH', it.channel, it.fence .. ' ' .. (redis.call('HGET', name, 'mark') or '0') .. ' ' .. ticket)
    end
    if not it.shared then return end
    before = it
    rank = rank + 1
  end
end

-- It goes: who stood behind it while it waited may get in, or the first once it had it.
local function leave(it)
  local rank = it.fence == '0' and redis.call('ZRANK', line, id)
  drop(id)
  grant(rank or 0)
end

-- All are looked at when one may be over, or the clock was set back: no deadline is further away for that than it was.
local back = math.max(tonumber(redis.call('HGET', name, 'seen') or '0') - now, 0)
local soonest = tonumber(redis.call('HGET', name, 'soonest') or '0') - back
if back > 0 or soonest <= now then
  local granted = 0
  soonest = now + lease
  for _, ticket in ipairs(redis.call('ZRANGE', line, 0, -1)) do
    local it = read(ticket)
    if not it then
      redis.call('ZREM', line, ticket)
    elseif it.deadline - back <= now then
      -- One that held alone leaves its mark.
      if it.fence ~= '0' and not it.shared then redis.call('HSET', name, 'mark', '1') end
      drop(ticket)
    else
      it.deadline = it.deadline - back
      if back > 0 then write(ticket, it) end
      if it.fence ~= '0' then granted = granted + 1 end
      soonest = math.min(soonest, it.deadline)
    end
  end
  grant(granted)
end

local it = read(id)
if verb == 'release' then
  if it then
    if mark == 'set' and it.fence ~= '0' then redis.call('HSET', name, 'mark', '1') end
    if mark == 'clear' and it.fence ~= '0' then redis.call('HDEL', name, 'mark') end
    leave(it)
  end
elseif it or verb == 'enqueue' or verb == 'try' then
  if verb == 'clear' and it.fence ~= '0' then redis.call('HDEL', name, 'mark') end
  local is_new = not it
  if is_new then
    redis.call('ZADD', line, redis.call('HINCRBY', name, 'place', 1), id)
    it = { fence = '0', shared = shared == '1', channel = session }
  end
  it.deadline = now + lease
  soonest = math.min(soonest, it.deadline)
  write(id, it)
  if is_new then grant(redis.call('ZRANK', line, id)) end
end

it = read(id)
if verb == 'try' and it and it.fence == '0' then
  leave(it)
  it = nil
end
redis.call('HSET', name, 'seen', now, 'soonest', soonest)

-- A mark stays, and so does who holds alone and may leave one: nobody may come for longer than a day.
local first = redis.call('ZRANGE', line, 0, 0)[1]
local head = first and read(first)
local stays = redis.call('HGET', name, 'mark') or (head and head.fence ~= '0' and not head.shared)
for _, key in ipairs(KEYS) do
  if stays then redis.call('PERSIST', key) else redis.call('EXPIRE', key, 86400 + math.ceil(lease / 1000)) end
end

-- When somebody who waits should ask again: the one before it may be gone then.
return { it and 1 or 0, it and it.fence or '0', redis.call('HGET', name, 'mark') or '0', it and it.fence == '0' and soonest - now or 0 }
`;

exports.SCRIPT = SCRIPT;
exports.SHA = createHash('sha1').update(SCRIPT).digest('hex');

/** The state of a ticket. */
exports.readTicket = (text) => {
  const [, deadline, fence, kind, session] = /^(\d+) (\d+) (\d) (.*)$/s.exec(String(text));
  return { deadline: Number(deadline), isGranted: fence !== '0', isShared: kind === '1', session };
};
