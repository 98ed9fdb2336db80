// Refuses JSON that is nested so deeply that the parser of the model server would end the process.
const LARGEST_DEPTH = 32;

function isTooDeep(body) {
  let depth = 0, inString = false;
  for (let place = 0; place < body.length; place++) {
    const byte = body[place];
    if (inString) {
      if (byte === 0x5c) place++; // a backslash: the next byte is part of the string
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) inString = true;
    else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > LARGEST_DEPTH) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth--;
  }
  return false;
}

function check(request) {
  if (isTooDeep(request.requestBuffer || [])) {
    request.return(400, '{"error": "JSON is nested too deeply"}');
  } else {
    request.internalRedirect("@model_server");
  }
}

export default { check };
