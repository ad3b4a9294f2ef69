# dld in a container for a Jetson with JetPack 6 or 7: docs/guides/targets.md. Run on the board, in the
# root of a clone:
#   docker build -f containers/l4t.Dockerfile --build-arg BASE=IMAGE -t dld .
# BASE: an L4T image with TensorRT, of the same release as the board (R36, R38, R39).
ARG BASE
FROM ${BASE}
ARG EXTRAS=cpu

# Install the image's TensorRT for Python, if available. Without it, ONNX Runtime still works.
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
      python3 python3-pip python3-venv \
 && { python3 -c 'import tensorrt' 2>/dev/null \
      || DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
           python3-libnvinfer \
      || echo "no TensorRT for Python in this image"; } \
 && rm -rf /var/lib/apt/lists/*

COPY pyproject.toml README.md LICENSE NOTICE.md /opt/dld/source/
COPY requirements /opt/dld/source/requirements
COPY share /opt/dld/source/share
COPY src /opt/dld/source/src

# The environment sees the TensorRT of the image. NVIDIA's images pin packages in PIP_CONSTRAINT,
# which must not apply to this environment.
RUN python3 -m venv --system-site-packages /opt/dld/venv \
 && PIP_CONSTRAINT= /opt/dld/venv/bin/python -m pip install --no-cache-dir \
      --constraint /opt/dld/source/requirements/constraints.txt "/opt/dld/source[${EXTRAS}]"

ENV PATH=/opt/dld/venv/bin:${PATH} COLORTERM=truecolor
WORKDIR /work
CMD ["dld"]
