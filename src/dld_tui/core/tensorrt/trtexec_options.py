"""The options of trtexec, and which versions have them: 8.0 to 11.1."""

from __future__ import annotations

from typing import TypeAlias

Version: TypeAlias = "tuple[int, int]"

# fmt: off
_SINCE = {
    "8.0": (
        "--allowGPUFallback --avgRuns --avgTiming --batch --best --buildOnly --calib "
        "--deploy --device --dumpOutput --dumpProfile --dumpRefit --duration "
        "--explicitBatch --explicitPrecision --exportOutput --exportProfile --exportTimes "
        "--exposeDMA --fp16 --help --inputIOFormats --int8 --iterations --loadEngine "
        "--loadInputs --maxBatch --maxShapes --maxShapesCalib --minShapes --minShapesCalib "
        "--minTiming --model --noBuilderCache --noDataTransfers --noTF32 --nvtxMode --onnx "
        "--optShapes --optShapesCalib --output --outputIOFormats --percentile --plugins "
        "--refit --safe --saveEngine --separateProfileRun --serialized --shapes --sleepTime "
        "--sparsity --streams --tacticSources --threads --timeDeserialize --timeRefit "
        "--timingCacheFile --uff --uffInput --uffNHWC --useCudaGraph --useDLACore "
        "--useSpinWait --verbose --warmUp --workspace -h "
    ),
    "8.2": (
        "--consistency --directIO --dumpLayerInfo --exportLayerInfo --idleTime "
        "--precisionConstraints --profilingVerbosity --restricted --useManagedMemory "
    ),
    "8.4": (
        "--layerOutputTypes --layerPrecisions --memPoolSize --std -v "
    ),
    "8.5": (
        "--heuristic --persistentCacheRatio --preview "
    ),
    "8.6": (
        "--buildDLAStandalone --builderOptimizationLevel --dumpRawBindingsToFile "
        "--dynamicPlugins --excludeLeanRuntime --fp8 --hardwareCompatibilityLevel "
        "--ignoreParsedPluginLibs --infStreams --layerDeviceTypes --leanDLLPath "
        "--maxAuxStreams --setPluginsToSerialize --skipInference --staticPlugins --tempdir "
        "--tempfileControls --useRuntime --vc --versionCompatible "
    ),
    "10.0": (
        "--allocationStrategy --allowWeightStreaming --bf16 --calibProfile "
        "--dumpOptimizationProfile --errorOnTimingCacheMiss --getPlanVersionOnly "
        "--markDebug --noCompilationCache --pi --pluginInstanceNorm --profile "
        "--saveDebugTensors --stripWeights --stronglyTyped --useProfile "
        "--weightStreamingBudget --weightless "
    ),
    "10.1": (
        "--int4 --stripAllWeights "
    ),
    "10.2": (
        "--runtimePlatform "
    ),
    "10.4": (
        "--maxTactics "
    ),
    "10.6": (
        "--monitorMemory "
    ),
    "10.7": (
        "--asyncFileReader "
    ),
    "10.8": (
        "--l2LimitForTiling --tilingOptimizationLevel "
    ),
    "10.11": (
        "--uint8AsymmetricQuantizationDLA "
    ),
    "10.12": (
        "--distributiveIndependence --markUnfusedTensorsAsDebugTensors "
        "--saveAllDebugTensors "
    ),
    "10.13": (
        "--dumpKernelText --remoteAutoTuningConfig --safetyPlugins "
    ),
    "10.14": (
        "--decomposableAttentions --refitFromOnnx "
    ),
    "10.15": (
        "--cpuOnly --enablePluginOverride "
    ),
    "10.16": (
        "--adjustForDLA --reportCapabilityDLA "
    ),
    "11.0": (
        "--includeDataTransfers --noCudaGraph --noSpinWait "
    ),
    "11.1": (
        "--accuracyAlgorithm --accuracyThreshold --atol --continue --dryRun "
        "--helpBuildRoute --loadRefOutputs --refPair --rtol --saveAllEngines "
        "--setBuildRoute --tuneBuildRouteFile --tuneBuildRoutes --tuningCacheFile "
        "--tuningResultFile --tuningSearch --tuningTimeOut "
    ),
}
"""Options by the release that brought them; 8.0 stands for itself and those before."""
_LAST = {
    "8.6": (
        "--batch --buildOnly --deploy --explicitBatch --explicitPrecision --heuristic "
        "--maxBatch --minTiming --model --nvtxMode --output --uff --uffInput --uffNHWC "
        "--workspace "
    ),
    "10.16": (
        "--best --bf16 --calib --calibProfile --fp16 --fp8 --int4 --layerOutputTypes "
        "--layerPrecisions --maxShapesCalib --minShapesCalib --optShapesCalib "
        "--precisionConstraints --restricted --weightless --int8 "
    ),
}
"""Options that later releases lack, by the last one that has them."""
# fmt: on

NEWEST: Version = (11, 1)


def version_of(text: str) -> Version:
    """Return a version such as ``10.16.1`` or ``11`` as two numbers."""
    parts = [int(part) if part.isdecimal() else 0 for part in text.split(".")[:2]]
    return (parts[0], parts[1] if len(parts) > 1 else 99)


SINCE: dict[str, Version] = {
    option: version_of(release) for release, options in _SINCE.items() for option in options.split()
}
LAST: dict[str, Version] = {
    option: version_of(release) for release, options in _LAST.items() for option in options.split()
}


def has_option(option: str, version: Version) -> bool:
    """Return whether the trtexec of a version has an option."""
    # No option went away within a major version.
    return SINCE.get(option, (99, 0)) <= version <= (LAST.get(option, (99, 0))[0], 99)
